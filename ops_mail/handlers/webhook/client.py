"""Posts a mail and reads the answer. Runs on the handlers' loop, like any async handler."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import aiohttp
from yarl import URL

from ops_mail import __version__
from ops_mail.core.outcome import EndKind
from ops_mail.core.webhook_outcome import asks_for_a_pause, retry_after_seconds, webhook_end
from ops_mail.handlers.answers import Permanent, RetryLater
from ops_mail.handlers.mail import Mail
from ops_mail.handlers.webhook.addresses import PublicResolver, refuse_private_literal
from ops_mail.handlers.webhook.payload import PayloadLimits, event_id, payload_bytes
from ops_mail.handlers.webhook.signing import sign
from ops_mail.settings import WebhookTarget, redact
from ops_mail.settings.redaction import redact_head

_CONNECT_SECONDS = 10.0
_ANSWER_BYTES = 64 * 1024
_KEPT_CHARS = 500


class WebhookError(Exception):
    """The receiver could not be reached, or said something that may pass."""


class WebhookHandler:
    """An async handler. Connections are kept open between mails; there is one set of them for each loop it runs on."""

    def __init__(self, target: WebhookTarget, timeout_seconds: float, limits: PayloadLimits | None = None) -> None:
        self._target = target
        self._timeout_seconds = timeout_seconds
        self._limits = limits or PayloadLimits()
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    async def __call__(self, mail: Mail) -> dict[str, Any]:
        """Raises Permanent, RetryLater or WebhookError unless the answer is 2xx."""
        if self._target.block_private:
            refuse_private_literal(self._target.url)
        body = await payload_bytes(mail, self._limits)
        try:
            status, headers, text = await self._post(body, self._headers(mail, body))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise WebhookError(f"no answer: {_told(error, self._target.url)}") from None
        return self._judge(status, headers.get("Retry-After"), text)

    async def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, Any, str]:
        # A redirect would send the signed mail to whomever the answer names.
        async with self._session().post(
            self._target.url, data=body, headers=headers, allow_redirects=False
        ) as response:
            content = await response.content.read(_ANSWER_BYTES)
            return response.status, response.headers, content.decode("utf-8", "replace")

    def _judge(self, status: int, retry_after: str | None, text: str) -> dict[str, Any]:
        kind = webhook_end(status)
        shown = redact(text)[:_KEPT_CHARS]
        if kind is EndKind.SUCCEEDED:
            return {"status": status, "answer": shown}
        told = f"the receiver answered {status}" + (f": {shown}" if shown else "")
        if kind is EndKind.PERMANENT:
            raise Permanent(told)
        seconds = retry_after_seconds(retry_after, datetime.now(UTC))
        if seconds is not None:
            raise RetryLater(told, seconds=seconds, pause_all=asks_for_a_pause(status, seconds))
        raise WebhookError(told)

    def _headers(self, mail: Mail, body: bytes) -> dict[str, str]:
        identity, timestamp = event_id(mail.key), int(time.time())
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": f"ops-mail/{__version__}",
            "webhook-id": identity,
            "webhook-timestamp": str(timestamp),
            "X-Ops-Mail-Attempt": str(mail.attempt),
        }
        if self._target.secret is not None:
            headers["webhook-signature"] = sign(self._target.secret.reveal(), identity, timestamp, body)
        return headers

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            connector = aiohttp.TCPConnector(
                limit=0, resolver=PublicResolver() if self._target.block_private else None, loop=loop
            )
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=self._timeout_seconds, sock_connect=_CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # an answer is read up to a limit, and must not grow behind it
                skip_auto_headers=("Accept-Encoding",),
                trust_env=False,
            )
        return session

    async def close(self) -> None:
        """Closes what was opened on this loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()


def _told(error: BaseException, url: str) -> str:
    """Without the URL, which many receivers give a token in: aiohttp repeats it in some of its errors."""
    if isinstance(error, TimeoutError):
        return "timeout"
    cause = getattr(error, "os_error", None) or error  # what aiohttp wraps says more than the wrapping
    text = str(cause)
    if isinstance(cause, aiohttp.ClientResponseError):
        text = f"the answer is no HTTP that can be read: {cause.message}"
    for spelling in (url, str(URL(url)), URL(url).raw_path_qs):
        if len(spelling) > 1:
            text = text.replace(spelling, "(OPS_MAIL_WEBHOOK_URL)")
    return f"{type(cause).__name__}: {redact_head(text, _KEPT_CHARS)}"
