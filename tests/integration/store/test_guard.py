from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from ops_mail.core.ids import FolderKey, Uid
from ops_mail.errors import Fenced, GuardLost, StoreRefused, StoreUnavailable
from ops_mail.store import CursorReport, Guard, Lease, Store, open_store
from tests.integration.store.conftest import LEASE_SECONDS, Lead
from tests.integration.store.locks import lock_connection
from tests.integration.store.samples import KEY, NOW, OTHER, V1, V2, batch, mail
from tests.servers.process import SqlServer

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def guards(store: Store) -> AsyncIterator[Callable[[str], Guard]]:
    made: list[Guard] = []

    def make(holder: str) -> Guard:
        made.append(Guard(store, holder, LEASE_SECONDS))
        return made[-1]

    yield make
    for guard in made:
        await guard.close()


async def acquired(guard: Guard, key: FolderKey = KEY) -> Lease:
    """The lease; a server takes a moment to free what a killed session held."""
    async with asyncio.timeout(10):
        while (lease := await guard.try_acquire(key)) is None:
            await asyncio.sleep(0.05)
    return lease


async def test_one_holds_and_the_other_stands_by_until_release(store: Store, guards: Callable[[str], Guard]) -> None:
    one, two = guards("one:1:a"), guards("two:2:b")
    first = await acquired(one)
    assert await two.try_acquire(KEY) is None
    assert await two.try_acquire(OTHER) is not None
    cursor = await store.read_cursor(KEY)
    assert cursor is not None
    assert (cursor.holder, cursor.epoch, cursor.uid_validity, cursor.lease_live) == ("one:1:a", 1, None, True)
    await one.release(first)
    cursor = await store.read_cursor(KEY)
    assert cursor is not None
    assert (cursor.holder, cursor.lease_live) == (None, False)
    second = await acquired(two)
    assert (second.epoch, second.cursor_id, second.taken_from) == (2, first.cursor_id, None)
    await one.release(first)  # too late to matter
    assert await two.lost([second]) == set()
    assert await one.lost([first]) == {KEY}
    with pytest.raises(GuardLost):
        await one.verify(first)
    await two.verify(second)


async def test_taking_again_what_is_held_begins_a_new_epoch(guards: Callable[[str], Guard]) -> None:
    guard = guards("one:1:a")
    first = await acquired(guard)
    second = await acquired(guard)
    assert second.epoch == first.epoch + 1
    assert (first.taken_from, second.taken_from) == (None, "one:1:a")
    assert await guard.lost([first, second]) == {KEY}
    await guard.release(first)
    assert await guards("two:2:b").try_acquire(KEY) is None
    await guard.verify(second)


async def test_folders_that_differ_in_case_or_accent_alone_are_apart(guards: Callable[[str], Guard]) -> None:
    one, two = guards("one:1:a"), guards("two:2:b")
    names = ("Büro", "büro", "Buro", "BÜRO", "𝔅üro", "𝔊üro", "Büro/" + "x" * 200)
    leases = [await acquired(one, FolderKey("a@b", name)) for name in names]
    assert len({lease.cursor_id for lease in leases}) == len(names)
    for name in names:
        assert await two.try_acquire(FolderKey("a@b", name)) is None
        assert await two.try_acquire(FolderKey("A@b", name)) is not None


async def test_folders_that_differ_in_blanks_at_the_end_never_share_a_row(
    store: Store, guards: Callable[[str], Guard]
) -> None:
    guard = guards("one:1:a")
    plain = await acquired(guard, FolderKey("a@b", "Box"))
    try:
        blank = await acquired(guard, FolderKey("a@b", "Box "))
    except StoreRefused:
        assert store.dialect == "mysql"
    else:
        assert blank.cursor_id != plain.cursor_id


async def test_the_heartbeat_prolongs_and_reports(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    async with store.engine.begin() as connection:
        await connection.execute(sa.text("UPDATE ops_mail_cursor SET lease_until = NULL"))
    await store.heartbeat(lease, CursorReport("syncing", 3, "e" * 9000 + "\ud800", NOW, NOW, NOW))
    await store.heartbeat(lease, CursorReport("idling"))
    (cursor,) = await store.list_cursors()
    assert (cursor.state, cursor.failures, cursor.last_error, cursor.next_retry_at) == ("idling", 0, None, None)
    assert (cursor.last_push_at, cursor.last_sync_at) == (NOW, NOW)
    assert cursor.lease_until is not None
    assert timedelta(0) < cursor.lease_until - cursor.updated_at <= timedelta(seconds=LEASE_SECONDS + 0.1)
    async with store.engine.begin() as connection:
        await connection.execute(sa.text("UPDATE ops_mail_cursor SET epoch = epoch + 1"))
    with pytest.raises(Fenced):
        await store.heartbeat(lease, CursorReport("idling"))


async def test_starting_a_cursor_twice_is_harmless_and_never_moves_it(store: Store, lead: Lead) -> None:
    lease = await lead(store, start=False)
    await store.start_cursor(lease, V1, Uid(5), Uid(5))
    await store.land(lease, batch([mail(9)]))
    await store.start_cursor(lease, V1, Uid(5), Uid(5))
    cursor = await store.read_cursor(KEY)
    assert cursor is not None
    assert (cursor.last_uid, cursor.start_uid) == (9, 5)
    with pytest.raises(StoreUnavailable, match="already"):
        await store.start_cursor(lease, V2, Uid(0), Uid(0))


async def test_a_cancelled_attempt_costs_no_other_lock(guards: Callable[[str], Guard]) -> None:
    guard = guards("one:1:a")
    held = await acquired(guard)
    for rounds in range(30):
        task = asyncio.create_task(guard.try_acquire(OTHER))
        for _ in range(rounds):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    assert await guard.lost([held]) == set()
    other = guards("two:2:b")
    async with asyncio.timeout(20):
        while await other.try_acquire(OTHER) is None:  # whatever the cancelled ones got is given back
            await asyncio.sleep(0.05)


async def test_closing_the_guard_frees_its_locks(server_store: Store) -> None:
    one, two = Guard(server_store, "one:1:a", LEASE_SECONDS), Guard(server_store, "two:2:b", LEASE_SECONDS)
    await acquired(one)
    await one.close()
    await acquired(two)
    await two.close()


async def test_a_killed_lock_connection_loses_every_folder(sql_server: SqlServer, server_store: Store) -> None:
    one, two = Guard(server_store, "one:1:a", LEASE_SECONDS), Guard(server_store, "two:2:b", LEASE_SECONDS)
    leases = [await acquired(one, KEY), await acquired(one, OTHER)]
    await server_store.start_cursor(leases[0], V1, Uid(0), Uid(0))
    sql_server.execute(f"KILL {await lock_connection(server_store, KEY)}")
    with pytest.raises(GuardLost):
        await one.verify(leases[0])
    assert await one.lost(leases) == {KEY, OTHER}
    taken = await acquired(two)
    with pytest.raises(Fenced):
        await server_store.land(leases[0], batch([mail(1)]))
    assert await one.try_acquire(KEY) is None
    again = await acquired(one, OTHER)  # on a new connection
    assert again.epoch == leases[1].epoch + 1
    assert await one.lost([leases[1], again]) == {OTHER}
    await two.verify(taken)
    await one.close()
    await two.close()


async def test_a_lost_lock_is_never_taken_back_unseen(sql_server: SqlServer, server_store: Store) -> None:
    one = Guard(server_store, "one:1:a", LEASE_SECONDS)
    lease = await acquired(one)
    sql_server.execute(f"KILL {await lock_connection(server_store, KEY)}")
    other = await acquired(one, OTHER)  # this call meets the broken connection first
    assert await one.lost([lease, other]) == {KEY}
    await one.close()


async def test_a_killed_server_and_its_return(own_server: SqlServer) -> None:
    store = open_store(own_server.create_database(), lease_seconds=LEASE_SECONDS)
    await store.migrate()
    one = Guard(store, "one:1:a", LEASE_SECONDS)
    lease = await acquired(one)
    await store.start_cursor(lease, V1, Uid(0), Uid(0))
    await store.land(lease, batch([mail(1)]))
    own_server.kill()
    with pytest.raises(StoreUnavailable):
        await store.land(lease, batch([mail(2)]))
    with pytest.raises(StoreUnavailable):
        await store.ping()
    with pytest.raises(GuardLost):
        await one.verify(lease)
    with pytest.raises(StoreUnavailable):
        await one.try_acquire(KEY)
    await one.release(lease)  # says so in the log and goes on
    await asyncio.to_thread(own_server.restart)
    again = await acquired(one)
    assert again.epoch == lease.epoch + 1
    assert (await store.land(again, batch([mail(1), mail(2)]))).duplicates == 1
    await one.close()
    await store.close(2)


async def test_a_frozen_holder_is_replaced_after_its_lease(database_url: str) -> None:
    lease_seconds = 3.0
    store = open_store(database_url, lease_seconds=lease_seconds)
    await store.migrate()
    guard = Guard(store, "second:2:b", lease_seconds)
    with holder(database_url, lease_seconds) as process:
        assert await says(process) == "held"
        assert await guard.try_acquire(KEY) is None
        os.kill(process.pid, signal.SIGSTOP)
        frozen_at = time.monotonic()
        while (lease := await guard.try_acquire(KEY)) is None:
            assert time.monotonic() - frozen_at < lease_seconds + 20
            await asyncio.sleep(0.1)
        os.kill(process.pid, signal.SIGCONT)
        assert await says(process) in ("Fenced", "GuardLost")
        await store.heartbeat(lease, CursorReport("idling"))
        assert await asyncio.to_thread(process.wait, 20) == 0
    await guard.close()
    await store.close(2)


@contextmanager
def holder(url: str, lease_seconds: float) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.integration.store.holder", url, str(lease_seconds)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def says(process: subprocess.Popen[str]) -> str:
    """The next of the holder's words; its log lines go by."""
    assert process.stdout is not None
    while True:
        line = (await asyncio.to_thread(process.stdout.readline)).strip()
        if line in ("held", "refused", "Fenced", "GuardLost", ""):
            return line
