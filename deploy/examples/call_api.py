"""OPS_MAIL_HANDLER=call_api:handle

Creates a ticket through an HTTP API for every mail. An async function: up to OPS_MAIL_HANDLER_CONCURRENCY mails are
under way at once on the handlers' own event loop, and one session serves them all. The API sees an Idempotency-Key that
is the same at each attempt, so a request whose answer was lost does not make a second ticket.
"""

# ruff: noqa: INP001 - a single file that is put where Python finds it

from __future__ import annotations

import os

import aiohttp

from ops_mail.handlers import Mail, Permanent, RetryLater

URL = os.environ.get("OPS_TICKET_URL", "http://127.0.0.1:8000/tickets")
_session: aiohttp.ClientSession | None = None


async def handle(mail: Mail) -> dict[str, object]:
    """Make a ticket of a mail."""
    ticket = {"title": mail.subject, "from": mail.from_addr, "text": mail.text_body or ""}
    async with session().post(URL, json=ticket, headers={"Idempotency-Key": mail.key}) as answer:
        if answer.status == 429:
            # Nothing else is sent until then either: the API is busy, not this one mail at fault.
            raise RetryLater("the API is busy", seconds=float(answer.headers.get("Retry-After", "30")), pause_all=True)
        if 400 <= answer.status < 500:
            raise Permanent(f"the API refuses this mail: {answer.status} {await answer.text()}")
        answer.raise_for_status()  # any other error: tried again after 2, 4, 8 … seconds
        return {"ticket": (await answer.json())["id"]}


def session() -> aiohttp.ClientSession:
    """One session for all mails."""
    global _session  # noqa: PLW0603 - one for the life of the process, made on the loop that uses it
    if _session is None or _session.closed:
        _session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))
    return _session
