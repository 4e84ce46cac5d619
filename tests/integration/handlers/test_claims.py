"""Claims, leases and outcomes on each engine, below the service."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.mail import MessageStatus
from ops_mail.core.outcome import AttemptOutcome, EndKind, decide
from ops_mail.errors import ForbiddenTable, StoreRefused, UnreadableStatement
from ops_mail.store import Store, open_store
from ops_mail.store.attempts import Ended, Write
from ops_mail.store.claims import Claim, ClaimWish
from ops_mail.store.handling import HandlingStore
from tests.handlers.seeding import MAILBOX, mail_values, seed_store
from tests.servers.tables import Tables

MAX_ATTEMPTS = 3


def handling(store: Store, *, in_order: bool = False) -> HandlingStore:
    return HandlingStore(store, in_order=in_order, max_attempts=MAX_ATTEMPTS)


def wish(limit: int = 10, **changes: Any) -> ClaimWish:
    return ClaimWish(lease_id="", limit=limit, handler="tests:handler", instance="me", **changes)


def ended(claim: Claim, kind: EndKind, **more: Any) -> Ended:
    return Ended(claim, decide(kind, claim.attempts, MAX_ATTEMPTS), **more)


def expire(tables: Tables) -> None:
    """As if every lease had been granted long ago."""
    tables.execute("UPDATE ops_mail_message SET lease_until = '2020-01-01 00:00:00' WHERE status = 'processing'")


def make_due(tables: Tables) -> None:
    tables.execute("UPDATE ops_mail_message SET next_attempt_at = '2020-01-01 00:00:00' WHERE status = 'retry'")


def id_of(tables: Tables, uid: int) -> int:
    return int(tables.value("SELECT id FROM ops_mail_message WHERE folder = 'INBOX' AND uid = :uid", uid=uid))


async def test_two_claimers_never_get_the_same_mail(store: Store, database_url: str, tables: Tables) -> None:
    await seed_store(store, [mail_values(uid) for uid in range(1, 61)])
    other = open_store(database_url, lease_seconds=3)
    found = await asyncio.gather(*(handling(each).claim(wish(7)) for each in (store, other) * 4))
    await other.close()
    ids = [claim.message_pk for claims in found for claim in claims]
    assert len(ids) == len(set(ids)) == 56
    assert tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status = 'processing' AND attempts = 1") == 56
    assert tables.value("SELECT COUNT(*) FROM ops_mail_attempt WHERE outcome IS NULL AND attempt_no = 1") == 56


async def test_only_what_is_landed_or_due_is_claimed(store: Store) -> None:
    statuses = ["landed", "done", "dead", "skipped", "quarantined", "oversize", "processing"]
    await seed_store(store, [mail_values(uid, status=status) for uid, status in enumerate(statuses, 1)])
    assert len(await handling(store).claim(wish())) == 1
    assert not await handling(store).anything_due()


@pytest.mark.parametrize(
    ("kind", "status", "outcome"),
    [
        (EndKind.SUCCEEDED, "done", "done"),
        (EndKind.DISCARDED, "skipped", "skipped"),
        (EndKind.FAILED, "retry", "retry"),
        (EndKind.PERMANENT, "dead", "dead"),
        (EndKind.TIMED_OUT, "retry", "timed_out"),
        (EndKind.INTERRUPTED, "retry", "abandoned"),
    ],
)
async def test_each_end_is_in_the_row_and_in_its_attempt(
    store: Store, tables: Tables, kind: EndKind, status: str, outcome: str
) -> None:
    await seed_store(store, [mail_values(1)])
    (claim,) = await handling(store).claim(wish())
    assert await handling(store).write([ended(claim, kind, error="Error: why", result={"n": 1})]) == []
    (row,) = tables.rows("SELECT * FROM ops_mail_message")
    assert (row["status"], row["lease_id"], row["lease_until"]) == (status, None, None)
    assert (row["next_attempt_at"] is not None) == (status == "retry")
    (attempt,) = tables.rows("SELECT * FROM ops_mail_attempt")
    assert (attempt["outcome"], attempt["error"], attempt["handler"]) == (outcome, "Error: why", "tests:handler")
    assert "1" in attempt["result"]
    assert attempt["finished_at"] >= attempt["started_at"]
    dead = tables.rows("SELECT * FROM ops_mail_audit WHERE action = 'dead'")
    assert [(one["actor"], one["mailbox"]) for one in dead] == ([("system", MAILBOX)] if status == "dead" else [])
    assert row["attempts_forgiven"] == (1 if kind is EndKind.INTERRUPTED else 0)


async def test_many_ends_are_written_at_once_and_one_that_is_not_ours_hurts_no_other(
    store: Store, tables: Tables
) -> None:
    await seed_store(store, [mail_values(uid) for uid in range(1, 31)])
    work = handling(store)
    claims = await work.claim(wish(30))
    tables.execute("UPDATE ops_mail_message SET lease_id = 'another' WHERE uid = 7")
    foreign = next(claim for claim in claims if claim.message_pk == id_of(tables, 7))
    ends = [ended(claim, EndKind.SUCCEEDED, result=[n] if n % 2 else None) for n, claim in enumerate(claims)]
    unwritten = await work.write(ends)
    assert [(one.end.claim, one.error) for one in unwritten] == [(foreign, None)]
    assert tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status = 'done'") == 29
    assert tables.value("SELECT status FROM ops_mail_message WHERE uid = 7") == "processing"
    results = {row["message_pk"]: row["result"] for row in tables.rows("SELECT * FROM ops_mail_attempt")}
    for end in ends:
        if end.claim is not foreign:
            assert str(results[end.claim.message_pk]) == str(end.result)


async def test_a_lost_answer_to_commit_is_no_late_result(store: Store) -> None:
    await seed_store(store, [mail_values(1), mail_values(2)])
    work = handling(store)
    claims = await work.claim(wish())
    ends = [ended(claim, EndKind.SUCCEEDED) for claim in claims]
    assert await work.write(ends) == []
    assert await work.write(ends) == [], "the same ends once more, as after a COMMIT whose answer was lost"


async def test_what_was_claimed_but_never_started_goes_back_as_it_was(store: Store, tables: Tables) -> None:
    await seed_store(store, [mail_values(1)])
    work = handling(store)
    await work.give_back(await work.claim(wish()))
    (row,) = tables.rows("SELECT * FROM ops_mail_message")
    assert (row["status"], row["attempts"], row["next_attempt_at"], row["lease_id"]) == ("landed", 0, None, None)
    assert tables.value("SELECT COUNT(*) FROM ops_mail_attempt") == 0
    (claim,) = await work.claim(wish())
    await work.write([ended(claim, EndKind.FAILED)])
    make_due(tables)
    await work.give_back(await work.claim(wish()))
    (row,) = tables.rows("SELECT * FROM ops_mail_message")
    assert (row["status"], row["attempts"]) == ("retry", 1)
    assert len(await work.claim(wish())) == 1, "due at once"


async def test_a_lease_that_ran_out_is_recovered_and_its_late_result_is_refused(store: Store, tables: Tables) -> None:
    await seed_store(store, [mail_values(1)])
    work = handling(store)
    (claim,) = await work.claim(wish())
    assert await work.renew([claim]) == set()
    assert await work.recover_stale() == [], "a living lease is left alone"
    expire(tables)
    (verdict,) = await work.recover_stale()
    assert (verdict.status, verdict.outcome) == (MessageStatus.RETRY, AttemptOutcome.ABANDONED)
    assert len(await work.renew([claim])) == 1, "the old holder is told"
    (late,) = await work.write([ended(claim, EndKind.SUCCEEDED, result="late")])
    assert late.error is None
    assert tables.rows("SELECT outcome, result FROM ops_mail_attempt") == [{"outcome": "abandoned", "result": None}]
    make_due(tables)
    (again,) = await work.claim(wish())
    assert (again.attempt_no, again.suspect) == (2, True)
    await work.write([ended(again, EndKind.SUCCEEDED)])
    assert tables.value("SELECT crashes FROM ops_mail_message") == 0


async def test_a_mail_that_kills_its_process_each_time_is_dead_at_last(store: Store, tables: Tables) -> None:
    await seed_store(store, [mail_values(1)])
    work = handling(store)
    for _ in range(MAX_ATTEMPTS):
        assert len(await work.claim(wish())) == 1
        expire(tables)
        await work.recover_stale()
        make_due(tables)
    assert tables.value("SELECT status FROM ops_mail_message") == "dead"
    assert tables.value("SELECT COUNT(*) FROM ops_mail_attempt WHERE outcome = 'abandoned'") == MAX_ATTEMPTS
    assert tables.value("SELECT COUNT(*) FROM ops_mail_audit WHERE action = 'dead'") == 1


async def test_of_the_mails_that_may_have_killed_a_process_only_one_is_in_hand_at_a_time(
    store: Store, tables: Tables
) -> None:
    await seed_store(store, [mail_values(uid) for uid in range(1, 6)])
    work = handling(store)
    await work.claim(wish())
    expire(tables)
    await work.recover_stale()
    make_due(tables)
    await seed_store(store, [mail_values(uid) for uid in range(6, 8)])
    first = await work.claim(wish())
    assert sorted(claim.suspect for claim in first) == [False, False, True]
    assert await work.claim(wish(suspect=False)) == []


async def test_in_order_only_the_first_mail_of_a_folder_is_claimed(store: Store, tables: Tables) -> None:
    await seed_store(store, [mail_values(uid) for uid in (3, 1, 2)] + [mail_values(9, folder="Other")])
    work = handling(store, in_order=True)

    def uids() -> list[int]:
        rows = tables.rows("SELECT uid FROM ops_mail_message WHERE status = 'processing' ORDER BY uid")
        return [row["uid"] for row in rows]

    claims = await work.claim(wish())
    assert uids() == [1, 9]
    assert await work.claim(wish()) == []
    first = next(claim for claim in claims if claim.message_pk == id_of(tables, 1))
    await work.write([ended(first, EndKind.FAILED)])
    assert await work.claim(wish()) == [], "a mail that waits for its next attempt blocks those behind it"
    make_due(tables)
    (again,) = await work.claim(wish())
    assert again.message_pk == first.message_pk
    await work.write([ended(again, EndKind.PERMANENT)])
    assert await work.claim(wish()) == [], "so does a dead one"
    tables.execute("UPDATE ops_mail_message SET status = 'skipped' WHERE id = :id", id=first.message_pk)
    await work.claim(wish())
    assert uids() == [2, 9]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_in_order_a_folder_with_a_backlog_does_not_starve_another(store: Store, tables: Tables) -> None:
    folders = ("A", "B", "C")
    await seed_store(store, [mail_values(uid, folder=folder) for folder in folders for uid in range(1, 5)])
    work = handling(store, in_order=True)
    for turn in range(1, 7):
        (claim,) = await work.claim(wish(1, turn=turn))
        await work.write([ended(claim, EndKind.SUCCEEDED)])
    done = tables.rows("SELECT folder, uid FROM ops_mail_message WHERE status = 'done' ORDER BY folder, uid")
    assert [(row["folder"], row["uid"]) for row in done] == [(folder, uid) for folder in folders for uid in (1, 2)]


async def test_in_order_two_claimers_never_overtake(store: Store, database_url: str, tables: Tables) -> None:
    await seed_store(store, [mail_values(uid) for uid in range(1, 21)])
    other = open_store(database_url, lease_seconds=30)
    handled: list[int] = []

    async def work_on(each: Store) -> None:
        work = handling(each, in_order=True)
        while len(handled) < 20:
            for claim in await work.claim(wish()):
                handled.append(claim.message_pk)
                await work.write([ended(claim, EndKind.SUCCEEDED)])

    async with asyncio.timeout(60):
        await asyncio.gather(*(work_on(each) for each in (store, other, store, other)))
    await other.close()
    assert handled == [row["id"] for row in tables.rows("SELECT id FROM ops_mail_message ORDER BY uid")]


async def test_a_handlers_own_writes_happen_with_done_or_not_at_all(store: Store, tables: Tables) -> None:
    tables.execute("CREATE TABLE ops_invoice (mail_key VARCHAR(200) PRIMARY KEY, total INTEGER NOT NULL)")
    await seed_store(store, [mail_values(uid) for uid in range(1, 5)])
    work = handling(store)
    good, doubled, foreign, lost = await work.claim(wish())
    insert = "INSERT INTO ops_invoice (mail_key, total) VALUES (:key, :total)"
    tables.execute("UPDATE ops_mail_message SET lease_id = 'another' WHERE id = :id", id=lost.message_pk)
    twice = (Write(insert, {"key": "b", "total": 1}), Write(insert, {"key": "a", "total": 2}))
    unwritten = await work.write(
        [
            ended(good, EndKind.SUCCEEDED, writes=(Write(insert, {"key": "a", "total": 1}),)),
            ended(doubled, EndKind.SUCCEEDED, writes=twice),
            ended(foreign, EndKind.SUCCEEDED, writes=(Write("DELETE FROM domain_event_outbox"),)),
            ended(lost, EndKind.SUCCEEDED, writes=(Write(insert, {"key": "c", "total": 1}),)),
        ]
    )
    errors = {one.end.claim: type(one.error) for one in unwritten}
    assert errors == {doubled: StoreRefused, foreign: ForbiddenTable, lost: type(None)}
    assert tables.rows("SELECT * FROM ops_invoice") == [{"mail_key": "a", "total": 1}]
    assert tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status = 'done'") == 1


async def test_a_wrong_statement_of_a_handler_is_refused_alone_and_holds_up_nobody(
    store: Store, tables: Tables
) -> None:
    tables.execute("CREATE TABLE ops_invoice (mail_key VARCHAR(200) PRIMARY KEY, total INTEGER NOT NULL)")
    await seed_store(store, [mail_values(uid) for uid in range(1, 5)])
    work = handling(store)
    no_table, no_column, no_sql, good = await work.claim(wish())
    wrong = {
        no_table: "INSERT INTO ops_missing (mail_key) VALUES ('a')",
        no_column: "INSERT INTO ops_invoice (mail_key, amount) VALUES ('a', 1)",
        no_sql: "INSERT INTO ops_invoice (mail_key, total) VALUES ('a', 1",
    }
    ends = [ended(claim, EndKind.SUCCEEDED, writes=(Write(sql),)) for claim, sql in wrong.items()]
    insert = Write("INSERT INTO ops_invoice (mail_key, total) VALUES ('good', 1)")
    unwritten = await work.write([*ends, ended(good, EndKind.SUCCEEDED, writes=(insert,))])
    errors = {one.end.claim: type(one.error) for one in unwritten}
    # A statement that cannot be understood might name any table: the guard in the engine stops it first.
    assert errors == {no_table: StoreRefused, no_column: StoreRefused, no_sql: UnreadableStatement}
    assert tables.rows("SELECT * FROM ops_invoice") == [{"mail_key": "good", "total": 1}]


async def test_a_claim_looks_at_no_handled_mail(server_store: Store) -> None:
    """EXPLAIN of the statements that are really sent, in a table whose mails are done but for a few."""
    store = server_store
    await seed_store(store, [mail_values(uid, status="done") for uid in range(1, 4001)])
    await seed_store(store, [mail_values(uid) for uid in range(4001, 4011)])
    seen: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if "SKIP LOCKED" in statement:
            seen.append((statement, parameters))

    sa.event.listen(store.engine.sync_engine, "before_cursor_execute", note)
    assert len(await handling(store).claim(wish(30))) == 10
    sa.event.remove(store.engine.sync_engine, "before_cursor_execute", note)
    assert len(seen) == 3, "landed, retries, suspects"
    await seed_store(store, [mail_values(uid) for uid in range(4011, 4021)])
    for statement, parameters in seen:
        async with store.engine.connect() as connection:
            plan = await connection.exec_driver_sql(f"EXPLAIN FORMAT=TRADITIONAL {statement}", parameters)
            assert [row["key"] for row in plan.mappings()] == ["ops_mail_message_by_due"], statement
            before = await rows_read(connection)
            await connection.exec_driver_sql(statement, parameters)
            assert await rows_read(connection) - before < 50, statement


async def rows_read(connection: AsyncConnection) -> int:
    """How many rows and index entries this session has read so far, whatever the optimizer expected."""
    rows = await connection.execute(sa.text("SHOW SESSION STATUS LIKE 'Handler_read%'"))
    return sum(int(row["Value"]) for row in rows.mappings())
