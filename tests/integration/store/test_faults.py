"""What goes wrong between us and the database: nothing half-done, nothing hanging, nothing landed twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection
from structlog.testing import capture_logs

from ops_mail.core.ids import FolderKey, Uid
from ops_mail.core.mail import Blob, ParsedMail
from ops_mail.errors import Fenced, ForbiddenTable, StoreUnavailable
from ops_mail.store import CursorReport, DatabaseBlobs, Guard, Lease, Store, landing, open_store
from ops_mail.store import store as store_module
from ops_mail.store.database import Database
from ops_mail.store.engine import parse_url
from ops_mail.store.schema import blob, blob_chunk, message
from tests.integration.store.conftest import LEASE_SECONDS, Lead
from tests.integration.store.locks import lock_connection
from tests.integration.store.samples import KEY, V1, batch, file_blob, mail, sha256
from tests.servers.process import SqlServer


async def count(store: Store, table: sa.Table = message) -> int:
    async with store.engine.connect() as connection:
        return int((await connection.execute(sa.select(sa.func.count()).select_from(table))).scalar_one())


async def test_fenced_in_the_middle_of_a_landing(sql_server: SqlServer) -> None:
    """The takeover happens after the early check, while the content is being written."""
    url = sql_server.create_database()
    database = Database(parse_url(url), LEASE_SECONDS)

    class TakenOver(DatabaseBlobs):
        async def put(self, connection: AsyncConnection, blobs: Sequence[Blob]) -> None:
            await super().put(connection, blobs)
            sql_server.execute("UPDATE ops_mail_cursor SET epoch = epoch + 1", str(sa.make_url(url).database))

    store = Store(database, (), TakenOver(database))
    await store.migrate()
    guard = Guard(store, "one:1:a", LEASE_SECONDS)
    lease = await guard.try_acquire(KEY)
    assert lease is not None
    await store.start_cursor(lease, V1, Uid(0), Uid(0))
    with pytest.raises(Fenced):
        await store.land(lease, batch([mail(1, files=[b"x"])]))
    assert [await count(store, table) for table in (message, blob, blob_chunk)] == [0, 0, 0]
    await guard.close()
    await store.close(2)


async def test_a_takeover_waits_for_the_commit_it_came_too_late_for(
    sql_server: SqlServer, server_store: Store, lead: Lead, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cursor's row is locked from the fenced update to the commit: the next leader sees all or nothing."""
    lease = await lead(server_store)
    advance = landing._advance
    takeover: list[asyncio.Task[Lease]] = []

    async def slow(connection: AsyncConnection, mine: Lease, of: Any) -> None:
        await advance(connection, mine, of)
        sql_server.execute(f"KILL {await lock_connection(server_store, KEY)}")
        takeover.append(asyncio.create_task(take()))
        await asyncio.sleep(0.5)
        assert not takeover[0].done()

    async def take() -> Lease:
        return await lead(server_store, start=False)

    monkeypatch.setattr(landing, "_advance", slow)
    await server_store.land(lease, batch([mail(1), mail(2)]))
    taken = await takeover[0]
    assert taken.epoch == lease.epoch + 1
    cursor = await server_store.read_cursor(KEY)
    assert cursor is not None
    assert cursor.last_uid == 2
    assert await server_store.known_uids(KEY, V1, Uid(0), Uid(9)) == {1, 2}


async def test_a_long_landing_does_not_hold_up_the_heartbeat(
    server_store: Store, lead: Lead, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await lead(server_store)
    insert = landing._insert
    beats: list[str] = []

    async def slow(*args: Any) -> None:
        await insert(*args)
        async with asyncio.timeout(4):  # less than the server would let it wait for a lock
            await server_store.heartbeat(lease, CursorReport("syncing"))
        beats.append("beat")

    monkeypatch.setattr(landing, "_insert", slow)
    await server_store.land(lease, batch([mail(1)]))
    assert beats == ["beat"]


async def test_a_deadlock_is_tried_again(server_store: Store, lead: Lead) -> None:
    lease = await lead(server_store)
    contents = [b"%d" % n for n in range(40)]
    insert = "INSERT INTO ops_mail_blob VALUES (%s, 1, 'identity', '2024-01-01', NULL)"
    with pymysql.connect(**address(server_store), autocommit=False) as other, other.cursor() as cursor:
        # Many rows make the other transaction the dearer one, so the server gives up ours.
        for n in range(300):
            cursor.execute("INSERT INTO ops_mail_audit (at, actor, action) VALUES (NOW(), 'x', %s)", (str(n),))
        cursor.execute("UPDATE ops_mail_cursor SET updated_at = updated_at")
        with capture_logs() as logs:
            mails = [mail(uid, raw=content) for uid, content in enumerate(contents, start=1)]
            task = asyncio.create_task(server_store.land(lease, batch(mails)))
            await asyncio.sleep(1.0)  # it has written everything and waits for the cursor
            await asyncio.to_thread(cursor.execute, insert, (sha256(contents[0]),))
            other.rollback()
            result = await task
    assert result.landed == len(contents)
    assert "transaction_retried" in [one["event"] for one in logs]
    for content in contents:
        assert await server_store.read_blob(sha256(content)) == content


def address(store: Store) -> dict[str, Any]:
    url = store.engine.url
    names = {"user": url.username, "password": url.password, "database": url.database}
    return {"host": "127.0.0.1", "port": url.port, **names}


async def test_landings_cancelled_at_any_moment_leave_all_or_nothing(store: Store, lead: Lead, tmp_path: Path) -> None:
    lease = await lead(store)
    noise = random.Random(5)
    large = file_blob(noise.randbytes(600_000), tmp_path / "large")
    began = asyncio.get_running_loop().time()
    await store.land(lease, batch([mail(1, files=[b"first"])]))
    usual = asyncio.get_running_loop().time() - began
    uid = 2
    for _ in range(25):
        one = mail(uid, raw=b"%d" % uid, parsed=ParsedMail(text_body="x" * 300_000))
        mails = [replace(one, blobs=(*one.blobs, large)), mail(uid + 1), mail(uid + 2)]
        task = asyncio.create_task(store.land(lease, batch(mails)))
        await asyncio.wait([task], timeout=noise.uniform(0, 3 * usual))
        task.cancel()
        await asyncio.wait([task])
        cursor = await store.read_cursor(KEY)
        assert cursor is not None
        assert await store.known_uids(KEY, V1, Uid(0), Uid(1000)) == set(range(1, cursor.last_uid + 1))
        assert cursor.last_uid in (uid - 1, uid + 2)
        uid = cursor.last_uid + 1
    assert store.engine.sync_engine.pool.checkedout() == 0  # type: ignore[attr-defined] # every pool of ours counts
    assert (await store.land(lease, batch([mail(uid)]))).landed == 1


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_sqlite_transaction_that_is_given_up_frees_the_file_at_once(store: Store) -> None:
    kept: list[object] = []
    slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT MAX(i) FROM n"

    async def work(connection: AsyncConnection) -> None:
        driver: Any = (await connection.get_raw_connection()).driver_connection
        # A result that is not read to its end and is still referred to, as by a traceback until it is collected.
        kept.append(await driver.execute("SELECT * FROM (VALUES (1), (2), (3))"))
        await connection.execute(sa.text(slow))

    task = asyncio.create_task(store.database.writing("waiting", work))
    while not kept:
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])

    async def nothing(_connection: AsyncConnection) -> None: ...

    await store.database.writing("taking the lock", nothing, limit_seconds=2)


async def test_a_database_that_does_not_answer(own_server: SqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(own_server.create_database(), lease_seconds=4)
    await store.migrate()
    guard = Guard(store, "one:1:a", 4)
    lease = await guard.try_acquire(KEY)
    assert lease is not None
    await store.start_cursor(lease, V1, Uid(0), Uid(0))
    await store.land(lease, batch([mail(1)]))
    monkeypatch.setattr(store_module, "LANDING_SECONDS", 1.0)
    own_server.freeze()
    loop = asyncio.get_running_loop()
    began = loop.time()
    large = mail(2, raw=random.Random(1).randbytes(5_000_000), parsed=ParsedMail(text_body="x" * 9_000_000))
    with pytest.raises(StoreUnavailable, match="no answer"):
        await store.land(lease, batch([large]))
    assert await guard.lost([lease]) == {KEY}
    await guard.close()
    assert loop.time() - began < 15
    own_server.thaw()
    monkeypatch.undo()
    again = Guard(store, "one:1:a", 4)
    async with asyncio.timeout(30):
        while (lease := await again.try_acquire(KEY)) is None:
            await asyncio.sleep(0.1)
    assert (await store.land(lease, batch([large, mail(3)]))).landed == 2
    own_server.freeze()
    await again.close(1)
    await store.close(1)
    own_server.thaw()


async def test_no_statement_reaches_another_table(store: Store) -> None:
    async with store.engine.connect() as connection:
        for statement in ("SELECT * FROM domain_event_outbox", "DELETE FROM memory_sync_outbox", "CALL anything()"):
            with pytest.raises(ForbiddenTable):
                await connection.exec_driver_sql(statement)
        await connection.exec_driver_sql("CREATE TABLE ops_own_of_a_handler (id INTEGER PRIMARY KEY)")
        await connection.exec_driver_sql("INSERT INTO ops_own_of_a_handler VALUES (1)")


async def test_a_missing_table_says_what_to_do(database_url: str) -> None:
    store = open_store(database_url, lease_seconds=5)
    with pytest.raises(StoreUnavailable, match="ops-mail migrate"):
        await store.list_cursors()
    await store.close(2)


async def test_wrong_addresses_and_passwords_are_told_without_the_password(sql_server: SqlServer) -> None:
    url = sa.make_url(sql_server.create_database())
    for wrong in (url.set(password="hunter22"), url.set(port=1), url.set(database="nowhere")):
        store = open_store(wrong.render_as_string(hide_password=False), lease_seconds=5)
        with pytest.raises(StoreUnavailable) as told:
            await store.ping()
        assert str(wrong.password) not in str(told.value)
        guard = Guard(store, "x:1:a", 5)
        with pytest.raises(StoreUnavailable):
            await guard.try_acquire(FolderKey("a", "b"))
        await guard.close()
        await store.close(1)


async def test_the_other_driver(mariadb: SqlServer) -> None:
    """Guard, landing, content and fencing by asyncmy in place of aiomysql."""
    store = open_store(mariadb.create_database().replace("aiomysql", "asyncmy"), lease_seconds=LEASE_SECONDS)
    await store.migrate()
    one, two = Guard(store, "one:1:a", LEASE_SECONDS), Guard(store, "two:2:b", LEASE_SECONDS)
    lease = await one.try_acquire(KEY)
    assert lease is not None
    assert await two.try_acquire(KEY) is None
    await store.start_cursor(lease, V1, Uid(0), Uid(0))
    text = "ünïcode 😀 'quoted' \\ %s \0" * 40_000
    file = b"\0\xff'" * 1000
    await store.land(lease, batch([mail(1, files=[file], parsed=ParsedMail(text_body=text)), mail(2)]))
    assert (await store.land(lease, batch([mail(1), mail(2), mail(3)]))).duplicates == 2
    async with store.engine.connect() as connection:
        assert (await connection.execute(sa.select(message.c.text_body).where(message.c.uid == 1))).scalar_one() == text
    assert await store.read_blob(sha256(file)) == file
    mariadb.execute(f"KILL {await lock_connection(store, KEY)}")
    assert await one.lost([lease]) == {KEY}
    async with asyncio.timeout(10):
        while await two.try_acquire(KEY) is None:  # the server takes a moment to end a session
            await asyncio.sleep(0.05)
    with pytest.raises(Fenced):
        await store.land(lease, batch([mail(4)]))
    await one.close()
    await two.close()
    await store.close(2)
