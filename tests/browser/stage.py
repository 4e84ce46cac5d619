"""The real web server over a real database, with mailboxes whose states a test sets as their listeners would."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from ops_mail.core.clock import Clock
from ops_mail.core.ids import Epoch, FolderKey, Uid
from ops_mail.core.states import State
from ops_mail.core.status import MailboxStatus, ProcessStatus
from ops_mail.errors import Failure
from ops_mail.metrics import Metrics
from ops_mail.store import Store, open_store
from ops_mail.store.overview import OverviewReader
from ops_mail.web import WebOptions, WebServer, WebSources
from tests.browser.rows import Rows

Result = TypeVar("Result")
HERE = "mail-1:4711:0f3a9c5d2b7e"


def real_clock() -> Clock:
    return Clock(lambda: datetime.now(UTC), time.monotonic, lambda: time.clock_gettime(time.CLOCK_BOOTTIME))


def idling(name: str, clock: Clock, **more: Any) -> MailboxStatus:
    """A mailbox that works."""
    now, boot = clock.now(), clock.boot()
    status = MailboxStatus(
        key=FolderKey(name, "INBOX"),
        idle_window_seconds=120,
        command_timeout_seconds=30,
        state=State.IDLING,
        state_since=now - timedelta(seconds=72),
        holder=HERE,
        epoch=Epoch(7),
        last_uid=Uid(18_204),
        reconnects=2,
        next_wait_over_at=now + timedelta(seconds=48),
        last_push_at=now - timedelta(minutes=3),
        last_sync_at=now - timedelta(seconds=72),
        last_landed_at=now - timedelta(minutes=3),
        last_sync_mono=boot - 72,
    )
    for field, value in more.items():
        setattr(status, field, value)
    return status


def refused(name: str, clock: Clock) -> MailboxStatus:
    """A mailbox whose password is wrong."""
    return idling(
        name,
        clock,
        state=State.BACKOFF,
        state_since=clock.now() - timedelta(seconds=41),
        failures=6,
        reconnects=6,
        backlog=12,
        last_failure=Failure.AUTH,
        last_error=(
            "imap.example.org:993 refused the login of billing@example.org: [AUTHENTICATIONFAILED] Invalid "
            "credentials: check OPS_MAIL_IMAP_USERNAME and OPS_MAIL_IMAP_PASSWORD (many providers want an app password)"
        ),
        next_retry_at=clock.now() + timedelta(seconds=19),
        last_sync_at=clock.now() - timedelta(minutes=38),
        last_sync_mono=clock.boot() - 38 * 60,
    )


def standing_by(name: str, clock: Clock) -> MailboxStatus:
    """A mailbox that another instance listens to."""
    return MailboxStatus(
        key=FolderKey(name, "INBOX"),
        idle_window_seconds=120,
        command_timeout_seconds=30,
        state=State.STANDBY,
        state_since=clock.now() - timedelta(hours=5),
        holder="mail-2:812:77aa01bc44de",
        standby_seen_mono=clock.boot() + 3600,  # its listener looks every second; here nobody does
    )


class Stage:
    """A web server on a loop in a thread of its own; `close` ends both."""

    def __init__(self, folder: Path, mailboxes: list[MailboxStatus], options: WebOptions | None = None) -> None:
        self.clock = real_clock()
        self.status = ProcessStatus(
            instance="mail-1",
            role="all",
            enabled=True,
            started_at=self.clock.now() - timedelta(days=3, hours=5),
            mailboxes=mailboxes,
            database_ok=True,
            database_error=None,
            modules={"listener": "on", "handlers": "on", "maintenance": "on"},
            instance_id=HERE,
        )
        self.stuck: list[str] = []
        self.path = folder / "page.db"
        self.rows = Rows(self.path, self.clock.now())
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stage")
        self._thread.start()
        try:
            self.run(self._open())
        except BaseException:
            self._end()
            raise

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/"

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs on the server's loop and waits for the result."""
        done: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(30)

    def change(self, do: Callable[[], None]) -> None:
        """Changes a status where its listener would, and tells those who asked."""

        async def work() -> None:
            do()
            for mailbox in self.status.mailboxes:
                mailbox.notify()

        self.run(work())

    def close(self) -> None:
        try:
            self.run(self._close())
        finally:
            self._end()

    def reopen(self) -> None:
        """A new server on the same port, as after a restart."""
        self.run(self._serve(self.server.port))

    async def _open(self) -> None:
        self.store: Store = open_store(f"sqlite+aiosqlite:///{self.path}", lease_seconds=30)
        await self.store.migrate()
        await self._serve(0)

    async def _serve(self, port: int) -> None:
        self.server = WebServer(WebSources(self.status, Metrics(), self.clock, lambda: self.stuck), self._options)
        await self.server.start("127.0.0.1", port)
        ready = asyncio.Event()
        ready.set()
        self.server.connect_database(OverviewReader(self.store.database), ready)

    async def _close(self) -> None:
        await self.server.disconnect_database()
        await self.server.close()
        await self.store.close(2)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
