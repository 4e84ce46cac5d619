"""The guard is lost in every way: one batch is abandoned, never the process, and an old leader commits no more rows."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ops_mail.core.guardname import guard_name
from ops_mail.core.ids import FolderKey
from ops_mail.core.states import State
from ops_mail.errors import StoreUnavailable
from ops_mail.store import CursorReport, Guard, open_store
from tests.faults.harness import FAST, running
from tests.faults.proxy import TO_SERVER, Connection, Rule, Way
from tests.integration.faults.databases import ADVANCE, FIRST, Scene, at_answer_to, hashes, mail, scene
from tests.integration.listener.settings import plain_settings
from tests.servers.dovecot import Dovecot
from tests.servers.fixtures import *  # noqa: F403 - fixtures are found by name
from tests.servers.process import SqlServer
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

IDLE_SECONDS = 6
"""How long a server here lets a silent session live: in the field twice the lease and at least 30 s."""


class ShorterIdle(Rule):
    """Rewrites the pool's `wait_timeout=30` on its way to the server, in as many bytes: a test need not wait."""

    def hits(self, way: Way, line: bytes) -> bool:
        self.replace = line.replace(b"wait_timeout=30 ", b"wait_timeout=%d  " % IDLE_SECONDS)
        return super().hits(way, line)


def kill_lock_connection(server: SqlServer, at: Scene) -> None:
    """KILL of the session that holds this database's lock, as an administrator would."""
    name = at.tables.value("SELECT DATABASE()")
    held = at.tables.rows("SELECT mailbox, folder FROM ops_mail_cursor")
    assert held, name
    lock = guard_name(str(name), FolderKey(held[0]["mailbox"], held[0]["folder"]))
    ((thread,),) = server.execute(f"SELECT IS_USED_LOCK('{lock}')")
    assert thread is not None, "nobody holds the lock"
    server.execute(f"KILL {thread}")


@asynccontextmanager
async def frozen_leader(at: Scene, folder: Path, *, inside: bool) -> AsyncIterator[OpsMail]:
    """A leader stopped by SIGSTOP at its first landing: at its beginning, or before COMMIT with all rows written."""
    leader = OpsMail(folder, FAST | at.settings, name="old")
    frozen = asyncio.Event()

    def freeze(_: Connection) -> None:
        leader.signal(signal.SIGSTOP)
        frozen.set()

    at.proxy.add(ShorterIdle(TO_SERVER, rb"wait_timeout=30 ", nth=0))
    if inside:
        at_answer_to(at.proxy, ADVANCE, freeze)
    else:
        at.proxy.add(Rule(TO_SERVER, FIRST, hook=freeze))
    try:
        leader.launch()
        await asyncio.wait_for(frozen.wait(), 30)
        yield leader
    finally:
        leader.close()


def open_transactions(server: SqlServer) -> int:
    """How many sessions hold rows that they have not committed."""
    ((count,),) = server.execute("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_rows_modified > 0")
    return int(str(count))


async def test_the_lock_connection_killed_while_idle(
    sql_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    async with scene(dovecot, new_user(), sql_server.create_database()) as at, running(at.settings) as app:
        await app.until_state("idling")
        await asyncio.to_thread(kill_lock_connection, sql_server, at)
        await app.until(lambda: app.mailbox.epoch == 2, "the guard to be taken again")
        at.append(0)
        await at.until_landed(app, 1)
        assert (await app.get("/healthz"))[0] == 200
    at.assert_exactly([0])


async def test_the_lock_connection_killed_in_the_middle_of_a_batch_abandons_the_batch_alone(
    sql_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    """The landing is held back at its last statement until the loss is known; not one of its rows may remain."""
    async with scene(dovecot, new_user(), sql_server.create_database()) as at, running(at.settings) as app:
        await app.until_state("idling")
        rows_when_lost: list[int] = []

        async def lose_the_guard(_: Connection) -> None:
            await asyncio.to_thread(kill_lock_connection, sql_server, at)
            await app.until(lambda: "standby" in app.states[-3:] or app.mailbox.epoch == 2, "the loss to be noticed")
            rows_when_lost.append(await asyncio.to_thread(at.tables.count))

        rule = at.proxy.add(Rule(TO_SERVER, ADVANCE, hook=lose_the_guard))
        at.append(*range(30))
        await app.until(lambda: rows_when_lost, "the middle of the batch")
        await at.until_landed(app, 30, 40)
        await app.until_state("idling")
        assert rows_when_lost == [0]
        assert rule.matches >= 2  # the batch was begun again, under the next epoch
        assert app.mailbox.epoch == 2
        assert (await app.get("/healthz"))[0] == 200
    at.assert_exactly(range(30))


@pytest.mark.parametrize("inside", [False, True], ids=["before-its-landing", "inside-its-landing"])
async def test_a_leader_frozen_beyond_its_lease_writes_not_one_row_afterwards(
    inside: bool, sql_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str], tmp_path: Path
) -> None:
    """Inside the landing every row is written and locked: the server ends that session, and the new leader goes on."""
    async with scene(dovecot, new_user(), sql_server.create_database()) as at:
        at.append(*range(20))
        async with frozen_leader(at, tmp_path, inside=inside) as old:
            if inside:
                assert open_transactions(sql_server) >= 1
            assert at.tables.count() == 0
            direct = plain_settings(dovecot.port, dovecot, at.user, at.url, IDLE_SECONDS=60)
            async with running(direct, INSTANCE_NAME="new") as app:
                await at.until_landed(app, 20, IDLE_SECONDS + 30)
                await app.until_state("idling")
                rows = at.tables.rows("SELECT id, updated_at FROM ops_mail_message ORDER BY id")
                old.signal(signal.SIGCONT)
                await asyncio.to_thread(old.wait_for_line, "guard_lost", seconds=40)
                at.append(20)
                await at.until_landed(app, 21)
                assert at.tables.rows("SELECT id, updated_at FROM ops_mail_message ORDER BY id")[:-1] == rows
                assert at.tables.cursor()["epoch"] == app.mailbox.epoch
                assert str(at.tables.cursor()["holder"]).startswith("new:")
                assert old.process.poll() is None  # it lost a batch, not its life
            assert await asyncio.to_thread(old.terminate) == 0
    at.assert_exactly(range(21))


async def test_a_frozen_leader_is_fenced_at_its_last_statement(
    sql_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    """Somebody takes over in the middle of a landing (no waiting for locks involved): its last statement finds out."""
    async with scene(dovecot, new_user(), sql_server.create_database()) as at, running(at.settings) as app:
        await app.until_state("idling")

        def take_over(_: Connection) -> None:
            at.tables.execute("UPDATE ops_mail_cursor SET epoch = epoch + 1, holder = 'somebody:1:x'")

        rule = at.proxy.add(Rule(TO_SERVER, ADVANCE, hook=take_over))
        at.append(*range(10))
        await asyncio.wait_for(rule.fired.wait(), 20)
        await app.until(lambda: app.mailbox.state.value == "standby", "standing by")
        assert at.tables.count() == 0
        await at.until_landed(app, 10, 30)  # a lease later it asks again, and nobody else is there
        await app.until_state("idling")
    at.assert_exactly(range(10))


async def test_on_sqlite_a_leader_that_is_frozen_is_followed_when_its_lease_is_over(
    dovecot: Dovecot, new_user: Callable[[], str], tmp_path: Path
) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/mail.db"
    user = new_user()
    settings = plain_settings(dovecot.port, dovecot, user, url, IDLE_SECONDS=60)
    tables = Tables(url)
    with OpsMail(tmp_path / "old", FAST | settings, name="old") as old:
        await asyncio.to_thread(old.wait_state, "idling")
        old.signal(signal.SIGSTOP)
        dovecot.append_many(user, "INBOX", [mail(number) for number in range(5)])
        async with running(settings, INSTANCE_NAME="new") as app:
            await app.until(lambda: tables.count() == 5, "the new leader's rows", 30)
            old.signal(signal.SIGCONT)
            await asyncio.to_thread(old.wait_for_line, "guard_lost", seconds=20)
            dovecot.append(user, "INBOX", mail(5))
            await app.until(lambda: tables.count() == 6, "the next mail")
            assert str(tables.cursor()["holder"]).startswith("new:")
    assert tables.hashes() == hashes(range(6))


async def test_a_release_that_is_slow_does_not_free_the_lock_of_the_lease_after_it(
    sql_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    """The release has seen that the lock is its own and waits for its turn while the guard is taken again."""
    async with scene(dovecot, new_user(), sql_server.create_database()) as at:
        store = open_store(str(at.settings["DATABASE_URL"]), lease_seconds=6)
        guard, key, turn = Guard(store, "host:1:x", 6), FolderKey("box", "INBOX"), asyncio.Event()
        try:
            await store.migrate()
            first = await guard.try_acquire(key)
            assert first is not None
            asked = asyncio.Event()

            async def wait_for_turn(_: Connection) -> None:
                asked.set()
                await turn.wait()

            at.proxy.add(Rule(TO_SERVER, rb"IS_USED_LOCK", hook=wait_for_turn))
            again = asyncio.create_task(guard.try_acquire(key))
            await asyncio.wait_for(asked.wait(), 1)
            releasing = asyncio.create_task(guard.release(first))
            await asyncio.sleep(0.3)
            turn.set()
            await releasing
            second = await again
            assert second is not None
            assert await guard.lost([second]) == set()
        finally:
            turn.set()
            await guard.close()
            await store.close()


async def test_a_heartbeat_without_an_answer_is_given_up_within_the_lease(
    sql_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    async with scene(dovecot, new_user(), sql_server.create_database()) as at:
        store = open_store(str(at.settings["DATABASE_URL"]), lease_seconds=3)
        guard = Guard(store, "host:1:x", 3)
        try:
            await store.migrate()
            lease = await guard.try_acquire(FolderKey("box", "INBOX"))
            assert lease is not None
            at.proxy.add(Rule(TO_SERVER, rb"SET lease_until", then=Connection.freeze))
            with pytest.raises(StoreUnavailable):
                async with asyncio.timeout(3):
                    await store.heartbeat(lease, CursorReport(State.IDLING, 0, None, None, None, None))
        finally:
            at.proxy.thaw()
            await guard.close()
            await store.close()
