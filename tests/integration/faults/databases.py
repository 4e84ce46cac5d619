"""The database side under test: mails known by their hash, a proxy before the database, its exact moments."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from tests.faults.harness import App
from tests.faults.proxy import TO_CLIENT, TO_SERVER, Connection, FaultProxy, Rule
from tests.integration.listener.settings import plain_settings
from tests.servers.dovecot import Dovecot
from tests.servers.tables import Tables

Hook = Callable[[Connection], Awaitable[None] | None]

ADVANCE = rb"UPDATE ops_mail_cursor SET last_uid=CASE"
"""The last statement of every landing, and of nothing else."""

FIRST = rb"SELECT ops_mail_cursor\.uid_validity, ops_mail_cursor\.last_uid, UTC_TIMESTAMP"
"""The first."""

_COMMIT = rb"^\x07\x00\x00\x00\x03COMMIT$"


def mail(number: int) -> bytes:
    return b"Subject: %d\r\nMessage-ID: <%d@example.org>\r\n\r\nbody of %d\r\n" % (number, number, number)


def hashes(numbers: Iterable[int]) -> Counter[str]:
    return hashes_of(mail(number) for number in numbers)


def hashes_of(raws: Iterable[bytes]) -> Counter[str]:
    return Counter(hashlib.sha256(raw).hexdigest() for raw in raws)


def through(url: str, port: int) -> str:
    """The same database by way of a proxy's port."""
    return sa.make_url(url).set(port=port).render_as_string(hide_password=False)


@dataclass
class Scene:
    """A user in Dovecot, a fresh database, and a proxy between the product and that database."""

    dovecot: Dovecot
    user: str
    url: str
    proxy: FaultProxy

    def __post_init__(self) -> None:
        self.tables = Tables(self.url)
        self.settings = plain_settings(
            self.dovecot.port, self.dovecot, self.user, through(self.url, self.proxy.port), IDLE_SECONDS=60
        )

    def append(self, *numbers: int) -> None:
        self.dovecot.append_many(self.user, "INBOX", [mail(number) for number in numbers])

    async def until_landed(self, app: App, count: int, seconds: float = 20.0) -> None:
        await app.until(lambda: self.tables.count() >= count, f"{count} rows", seconds)

    def assert_exactly(self, numbers: Iterable[int]) -> None:
        """Each of these mails has one row, nothing else has, and the cursor stands behind the last."""
        wanted = hashes(numbers)
        assert self.tables.hashes() == wanted
        last_uid = self.tables.value("SELECT MAX(uid) FROM ops_mail_message")
        assert self.tables.cursor()["last_uid"] == last_uid


@asynccontextmanager
async def scene(dovecot: Dovecot, user: str, url: str) -> AsyncIterator[Scene]:
    """A scene for one test."""
    port = sa.make_url(url).port
    assert port is not None
    async with FaultProxy(("127.0.0.1", port), lines=False) as proxy:
        yield Scene(dovecot, user, url, proxy)


def at_landing_commit(proxy: FaultProxy, *, before: Hook | None = None, answer: Hook | None = None) -> asyncio.Event:
    """Act once, when a landing's COMMIT is about to reach the server, or when its answer comes back.

    The event is set when `before` or `answer` has been called.
    """
    fired = asyncio.Event()
    advancing: set[Connection] = set()
    committed: set[Connection] = set()

    async def act(hook: Hook, connection: Connection) -> None:
        fired.set()
        if (waiting := hook(connection)) is not None:
            await waiting

    async def on_commit(connection: Connection) -> None:
        if connection in advancing and not fired.is_set():
            committed.add(connection)
            if before is not None:
                await act(before, connection)

    async def on_answer(connection: Connection) -> None:
        if connection in committed and answer is not None and not fired.is_set():
            await act(answer, connection)

    proxy.add(Rule(TO_SERVER, ADVANCE, nth=0, hook=advancing.add))
    proxy.add(Rule(TO_SERVER, _COMMIT, nth=0, hook=on_commit))
    proxy.add(Rule(TO_CLIENT, rb"", nth=0, hook=on_answer))
    return fired


def at_answer_to(proxy: FaultProxy, statement: bytes, hook: Hook) -> None:
    """Act once, when the server has executed this statement and its answer has come as far as the proxy."""
    asked: set[Connection] = set()
    fired = False

    async def on_answer(connection: Connection) -> None:
        nonlocal fired
        if connection in asked and not fired:
            fired = True
            if (waiting := hook(connection)) is not None:
                await waiting

    proxy.add(Rule(TO_SERVER, statement, nth=0, hook=asked.add))
    proxy.add(Rule(TO_CLIENT, rb"", nth=0, hook=on_answer))
