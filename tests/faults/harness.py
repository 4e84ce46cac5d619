"""The product inside the test's own event loop: the same composition as the process, without a second of start-up.

async with running(plain_settings(...)) as app:
    await app.until_state("idling")
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp

from ops_mail.app.process import Hooks, serve
from ops_mail.core.status import MailboxStatus, ProcessStatus
from ops_mail.listener.tools import Landed
from ops_mail.settings import load_settings

FAST = {
    "HTTP_HOST": "127.0.0.1",
    "HTTP_PORT": "0",
    "INSTANCE_NAME": "one",
    "BACKOFF_INITIAL_SECONDS": "0.1",
    "BACKOFF_MAX_SECONDS": "0.5",
    "CONNECT_TIMEOUT_SECONDS": "3",
    "COMMAND_TIMEOUT_SECONDS": "3",
    "LEASE_SECONDS": "3",
    "VERIFY_INTERVAL_SECONDS": "0",
}
"""Settings that make a fault cost a test seconds instead of minutes; the code is the same."""


class App:
    """One running instance. The waits fail the test, with the mailbox's status, when their time is over."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.port = 0
        self.status: ProcessStatus | None = None
        self.landed: list[Landed] = []
        self.states: list[str] = []

    @property
    def mailboxes(self) -> list[MailboxStatus]:
        assert self.status is not None
        return self.status.mailboxes

    @property
    def mailbox(self) -> MailboxStatus:
        return self.mailboxes[0]

    async def until(self, look: Callable[[], Any], what: str, seconds: float = 20.0) -> None:
        """Poll until `look()` is true; it may be a blocking call."""
        deadline = time.monotonic() + seconds
        while not await asyncio.to_thread(look):
            if time.monotonic() > deadline:
                raise AssertionError(f"no {what} within {seconds:g} s; the mailbox: {self.mailbox}")
            await asyncio.sleep(0.02)

    async def until_state(self, state: str, seconds: float = 20.0) -> None:
        await self.until(lambda: self.mailbox.state.value == state, f"state {state}", seconds)

    async def until_synced_again(self, seconds: float = 20.0) -> None:
        """Until a sync that ends after now."""
        before = self.mailbox.last_sync_mono
        await self.until(lambda: self.mailbox.last_sync_mono not in (None, before), "another sync", seconds)

    async def get(self, path: str) -> tuple[int, str]:
        """Status code and body of a GET."""
        async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{self.port}{path}") as answer:
            return answer.status, await answer.text()

    async def get_json(self, path: str) -> tuple[int, dict[str, Any]]:
        code, body = await self.get(path)
        return code, json.loads(body)

    def _seen_status(self, status: ProcessStatus) -> None:
        self.status = status
        for mailbox in status.mailboxes:
            mailbox.changed.append(partial(self._seen_state, mailbox))

    def _seen_state(self, mailbox: MailboxStatus) -> None:
        self.states.append(mailbox.state.value)


@asynccontextmanager
async def running(settings: Mapping[str, object], **more: object) -> AsyncIterator[App]:
    """Run an instance with FAST settings overlaid by `settings` and `more` (names without OPS_MAIL_); ends in order."""
    merged = FAST | {name: str(value) for name, value in (dict(settings) | more).items()}
    loaded = load_settings({f"OPS_MAIL_{name}": value for name, value in merged.items()}, env_file=None)
    app = App()
    hooks = Hooks(
        on_landed=app.landed.append,
        on_listening=lambda port: setattr(app, "port", port),
        on_status=app._seen_status,
        stop=app.stop,
    )
    task = asyncio.create_task(serve(loaded, hooks), name="ops-mail")
    try:
        while app.status is None or app.port == 0:
            if task.done():
                raise AssertionError(f"it did not start: exit code {await task}")
            await asyncio.sleep(0.01)
        yield app
    finally:
        app.stop.set()
        code = await asyncio.wait_for(task, 20)
    assert code == 0
