"""The reads behind the page, on every engine: right, bounded, and served by an index."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from ops_mail.core.ids import FolderKey
from ops_mail.core.mail import MessageStatus
from ops_mail.store import Store, open_store
from ops_mail.store import overview as reads
from ops_mail.store.overview import OverviewReader
from ops_mail.store.overview_model import Tally
from ops_mail.store.schema import cursor, instance, message
from tests.servers.fixtures import *  # noqa: F403 - fixtures are found by name

KEY = FolderKey("orders", "INBOX")


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    opened = open_store(database_url, lease_seconds=30)
    await opened.migrate()
    yield opened
    await opened.close(2)


async def insert(store: Store, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    async with store.engine.begin() as connection:
        await connection.execute(sa.insert(table), rows)


def mail(uid: int, at: datetime, status: str = "done", **more: Any) -> dict[str, Any]:
    return {
        "mailbox": KEY.mailbox, "folder": KEY.folder, "uid_validity": 1, "uid": uid, "size_bytes": 100,
        "raw_sha256": f"{uid:064x}", "status": status, "attempts": 0, "landed_at": at, "updated_at": at,
        "received_at": at - timedelta(seconds=3), "subject": f"Order {uid}", "from_addr": "ann@example.org",
        "last_error": None,
    } | more  # fmt: skip


def folder(name: str, now: datetime, **more: Any) -> dict[str, Any]:
    return {
        "mailbox": name, "folder": "INBOX", "uid_validity": 1, "last_uid": 9, "start_uid": 0, "epoch": 1,
        "holder": "h:1:x", "lease_until": now + timedelta(hours=1), "state": "idling", "failures": 0,
        "created_at": now, "updated_at": now,
    } | more  # fmt: skip


async def test_an_empty_database_is_an_empty_overview(store: Store) -> None:
    found = await OverviewReader(store.database).read()
    assert (found.folders, found.instances, found.set_aside, found.latest) == ((), (), (), ())
    assert found.statuses == dict.fromkeys(MessageStatus, Tally(0))
    assert [hour.landed for hour in found.hours] == [Tally(0)] * 24
    assert found.hours[-1].start <= found.at < found.hours[-1].start + timedelta(hours=1)
    assert abs(found.at - datetime.now(UTC)) < timedelta(minutes=1)


async def test_mails_are_counted_in_the_hour_in_which_they_landed(store: Store) -> None:
    reader = OverviewReader(store.database)
    this_hour = (await reader.read()).hours[-1].start
    moments = [
        this_hour,
        this_hour - timedelta(microseconds=1),
        this_hour - timedelta(hours=1),
        this_hour - timedelta(hours=23),
        this_hour - timedelta(hours=23, microseconds=1),  # a day ago: not shown any more
    ]
    await insert(store, message, [mail(uid, at) for uid, at in enumerate(moments, 1)])
    counts = [hour.landed.count for hour in (await OverviewReader(store.database).read()).hours]
    assert (counts[-1], counts[-2], counts[0], sum(counts)) == (1, 2, 1, 4)


async def test_hours_that_are_over_are_counted_once(store: Store) -> None:
    reader = OverviewReader(store.database)
    this_hour = (await reader.read()).hours[-1].start
    await insert(store, message, [mail(1, this_hour), mail(2, this_hour - timedelta(hours=1)),
                                  mail(3, this_hour - timedelta(hours=5))])  # fmt: skip
    counts = [hour.landed.count for hour in (await reader.read()).hours]
    assert (counts[-1], counts[-2]) == (1, 1), "the last hour is still open: a landing may have taken minutes"
    assert counts[-6] == 0, "that hour was over when it was counted"


async def test_counting_ends_at_its_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "STATUS_LIMIT", 3)
    monkeypatch.setattr(reads, "HOUR_LIMIT", 4)
    now = (await OverviewReader(store.database).read()).at
    await insert(store, message, [mail(uid, now) for uid in range(1, 7)] + [mail(7, now, "dead")])
    found = await OverviewReader(store.database).read()
    assert found.statuses[MessageStatus.DONE] == Tally(3, at_least=True)
    assert found.statuses[MessageStatus.DEAD] == Tally(1)
    assert found.hours[-1].landed == Tally(4, at_least=True)


async def test_the_newest_set_aside_mails_are_listed_with_their_reasons(store: Store) -> None:
    now = (await OverviewReader(store.database).read()).at
    rows = [mail(uid, now, "dead", last_error=f"reason {uid}", subject="x" * 5000) for uid in range(1, 31)]
    rows += [mail(31, now, "quarantined"), mail(32, now, "done"), mail(33, now, "oversize"), mail(34, now, "retry")]
    await insert(store, message, rows)
    found = (await OverviewReader(store.database).read()).set_aside
    assert [(line.uid, line.status) for line in found[:3]] == [(33, "oversize"), (31, "quarantined"), (30, "dead")]
    assert len(found) == reads.LIST_LIMIT
    assert found[2].error == "reason 30"
    assert len(found[2].subject) == reads.TEXT_CHARS


async def test_the_latest_mails_are_those_that_landed_last(store: Store) -> None:
    now = (await OverviewReader(store.database).read()).at
    await insert(store, message, [mail(uid, now, subject="", from_name="Ann") for uid in range(1, 26)])
    found = (await OverviewReader(store.database).read()).latest
    assert [line.uid for line in found] == list(range(25, 5, -1))
    assert (found[0].subject, found[0].from_name, found[0].from_addr) == ("", "Ann", "ann@example.org")


async def test_a_folder_is_told_with_its_newest_mail_of_the_present_numbering(store: Store) -> None:
    now = (await OverviewReader(store.database).read()).at
    rows = [mail(1, now - timedelta(hours=3)), mail(9, now - timedelta(hours=2))]
    rows.append(mail(50, now, uid_validity=-1))  # of a numbering that the server took back
    await insert(store, message, rows)
    await insert(store, cursor, [folder("orders", now), folder("empty", now, lease_until=now - timedelta(hours=1))])
    empty, orders = (await OverviewReader(store.database).read()).folders
    assert (orders.cursor.key, orders.cursor.lease_live) == (KEY, True)
    assert orders.last_landed_at is not None
    assert abs(orders.last_landed_at - (now - timedelta(hours=2))) < timedelta(seconds=1)
    assert (empty.cursor.key.mailbox, empty.cursor.lease_live, empty.last_landed_at) == ("empty", False, None)


async def test_lists_of_folders_and_instances_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "FOLDER_LIMIT", 3)
    monkeypatch.setattr(reads, "INSTANCE_LIMIT", 2)
    now = (await OverviewReader(store.database).read()).at
    await insert(store, cursor, [folder(f"box{number}", now) for number in range(5)])
    ages = [timedelta(seconds=seconds) for seconds in (50, 10, 30)]
    await insert(store, instance, [
        {"instance": f"i{age.seconds}", "role": "all", "started_at": now, "heartbeat_at": now - age, "detail": None}
        for age in ages
    ])  # fmt: skip
    found = await OverviewReader(store.database).read()
    assert len(found.folders) == 3
    assert [one.instance for one in found.instances] == ["i10", "i30"]
    assert 9 < found.instances[0].age_seconds < 60


async def test_no_read_walks_through_the_table(store: Store) -> None:
    now = (await OverviewReader(store.database).read()).at
    statuses = ["done"] * 8 + ["dead", "landed"]
    rows = [mail(uid, now - timedelta(minutes=uid), statuses[uid % 10]) for uid in range(1, 4001)]
    await insert(store, message, rows)
    await insert(store, cursor, [folder("orders", now, last_uid=4000)])
    plans = await explained(store)
    assert len(plans) == 9
    for statement, plan in plans:
        text = f"{statement}\n{plan}"
        if store.dialect == "sqlite":
            whole = (
                "ORDER BY ops_mail_message.id DESC" in statement and "WHERE" not in statement
            )  # from the end, 20 rows
            assert whole or "SCAN ops_mail_message" not in plan, text
            assert "TEMP B-TREE FOR ORDER BY" not in plan or "ops_mail_instance" in statement, text
        elif "ops_mail_message" in statement:
            assert "ALL ops_mail_message" not in plan, text
            assert "filesort ops_mail_message" not in plan, text


async def explained(store: Store) -> list[tuple[str, str]]:
    """Each statement of one look, and how the engine goes about it."""
    statements: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        statements.append((statement, parameters))

    sa.event.listen(store.engine.sync_engine, "before_cursor_execute", note)
    await OverviewReader(store.database).read()
    sa.event.remove(store.engine.sync_engine, "before_cursor_execute", note)
    plans = []
    async with store.engine.connect() as connection:
        if store.dialect != "sqlite":
            await connection.exec_driver_sql("ANALYZE TABLE ops_mail_message")
        for statement, parameters in [each for each in statements if "FROM ops_mail" in each[0]]:
            prefix = "EXPLAIN QUERY PLAN " if store.dialect == "sqlite" else "EXPLAIN FORMAT=TRADITIONAL "
            if store.database.url.get_backend_name() != "sqlite" and await is_mariadb(connection):
                prefix = "EXPLAIN "
            rows = (await connection.exec_driver_sql(prefix + statement, parameters)).mappings().all()
            plans.append((statement, "".join(plan_line(dict(row)) for row in rows)))
    return plans


async def is_mariadb(connection: Any) -> bool:
    version = (await connection.exec_driver_sql("SELECT VERSION()")).scalar_one()
    return "mariadb" in str(version).lower()


def plan_line(row: dict[str, Any]) -> str:
    if "detail" in row:
        return f"{row['detail']}\n"
    small = {name.lower(): value for name, value in row.items()}
    sort = "filesort " if "filesort" in str(small["extra"]) else ""
    return f"{small['type']} {sort}{small['table']} by {small['key']} ({small['extra']})\n"
