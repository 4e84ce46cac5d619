"""The service with real functions on real databases: what they may do, and what nobody else must notice."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import threading
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import Listed, RawMail
from ops_mail.handlers import Discard, Done, Mail, Permanent, RetryLater, Write
from ops_mail.mime.prepare import PrepareLimits, prepare
from ops_mail.settings import HandlerOrder
from ops_mail.store import Guard, LandingBatch, Store
from tests.handlers.seeding import MAILBOX, mail_values, seed_store
from tests.integration.handlers.conftest import Effects, Serve, until
from tests.servers.tables import Tables


def statuses(tables: Tables) -> dict[str, int]:
    rows = tables.rows("SELECT status, COUNT(*) AS n FROM ops_mail_message GROUP BY status")
    return {row["status"]: row["n"] for row in rows}


def attempts(tables: Tables) -> list[dict[str, Any]]:
    return tables.rows("SELECT * FROM ops_mail_attempt ORDER BY message_pk, attempt_no")


def utc(value: Any) -> datetime:
    parsed = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return parsed.replace(tzinfo=UTC)


async def test_plain_functions_run_in_threads_and_async_ones_on_a_loop_of_their_own(
    store: Store, tables: Tables, serve: Serve
) -> None:
    main, seen = threading.get_ident(), set()

    def plain(mail: Mail) -> dict[str, object]:
        seen.add(threading.get_ident())
        return {"subject": mail.subject, "attempt": mail.attempt}

    async def on_loop(mail: Mail) -> str:
        seen.add(threading.get_ident())
        await asyncio.sleep(0)
        return mail.key

    await seed_store(store, [mail_values(uid) for uid in range(1, 6)])
    async with serve(plain) as running:
        await until(lambda: statuses(tables) == {"done": 5}, "all done")
        await seed_store(store, [mail_values(uid) for uid in range(6, 11)])
        running.service.wake()
        await until(lambda: statuses(tables) == {"done": 10}, "all done")
        await until(lambda: running.count("done") == 10, "the count")
    async with serve(on_loop):
        await seed_store(store, [mail_values(11)])
        await until(lambda: statuses(tables) == {"done": 11}, "done")
    assert main not in seen
    results = [str(row["result"]) for row in attempts(tables)]
    assert "mail 1" in results[0]
    assert f"{MAILBOX}/INBOX/7/11" in results[-1]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_each_way_to_end_has_its_status(store: Store, tables: Tables, serve: Serve, asynchronous: bool) -> None:
    def by_uid(mail: Mail) -> object:
        match mail.uid:
            case 1:
                raise Discard("not for us")
            case 2:
                raise Permanent("never")
            case 3:
                raise ValueError("odd")
            case 4:
                raise RetryLater("later", seconds=100)
            case 5:
                raise SystemExit(3)
            case 6:
                return object()
            case _:
                return Done("fine")

    async def by_uid_async(mail: Mail) -> object:
        return by_uid(mail)

    await seed_store(store, [mail_values(uid) for uid in range(1, 8)])
    with capture_logs() as logs:
        async with serve(by_uid_async if asynchronous else by_uid):
            await until(lambda: not statuses(tables).keys() & {"landed", "processing"}, "ends")
    found = {row["uid"]: row for row in tables.rows("SELECT * FROM ops_mail_message")}
    assert {uid: row["status"] for uid, row in found.items()} == {
        1: "skipped", 2: "dead", 3: "retry", 4: "retry", 5: "retry", 6: "done", 7: "done"
    }  # fmt: skip
    assert found[3]["last_error"].startswith("ValueError: odd\n")
    assert "test_service.py" in found[3]["last_error"]
    waits = {
        uid: (utc(found[uid]["next_attempt_at"]) - utc(found[uid]["updated_at"])).total_seconds() for uid in (3, 4)
    }
    assert waits == {3: pytest.approx(2, abs=0.01), 4: pytest.approx(100, abs=0.01)}
    errors = {row["message_pk"]: row["error"] for row in attempts(tables)}
    assert errors[found[6]["id"]].startswith("the result (object) was not kept, it is no JSON: TypeError: ")
    assert errors[found[7]["id"]] is None
    (told,) = [one for one in logs if one["event"] == "result_not_kept"]
    assert (told["log_level"], told["key"]) == ("warning", f"{MAILBOX}/INBOX/7/6")
    assert told["error"] == "the result (object) was not kept, it is no JSON"


async def test_failures_are_tried_again_until_the_mail_is_dead(store: Store, tables: Tables, serve: Serve) -> None:
    def fails(mail: Mail) -> None:
        raise RuntimeError(f"attempt {mail.attempt}")

    await seed_store(store, [mail_values(1)])
    async with serve(fails, max_attempts=2):
        await until(lambda: statuses(tables) == {"dead": 1}, "death")
    assert [(row["attempt_no"], row["outcome"]) for row in attempts(tables)] == [(1, "retry"), (2, "dead")]
    (audit,) = tables.rows("SELECT * FROM ops_mail_audit WHERE action = 'dead'")
    assert "attempt 2" in str(audit["detail"])


async def test_a_hang_costs_one_attempt_and_nobody_else_waits(store: Store, tables: Tables, serve: Serve) -> None:
    released = threading.Event()

    def hangs(mail: Mail) -> None:
        if mail.uid == 1:
            released.wait(60)

    await seed_store(store, [mail_values(uid) for uid in range(1, 11)])
    try:
        async with serve(hangs, timeout_seconds=0.5, concurrency=1) as running:
            await until(lambda: statuses(tables).get("done") == 9, "the other nine")
            await until(lambda: any(row["outcome"] == "timed_out" for row in attempts(tables)), "the time-out")
            await until(lambda: (running.sample("ops_mail_handler_hung") or 0) >= 1, "the metric")
            released.set()
    finally:
        released.set()
    assert "0.5 s" in attempts(tables)[0]["error"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_mail_that_hangs_at_each_attempt_ends_as_dead(store: Store, tables: Tables, serve: Serve) -> None:
    released = threading.Event()

    def hangs(_mail: Mail) -> None:
        released.wait(60)

    await seed_store(store, [mail_values(1)])
    try:
        async with serve(hangs, timeout_seconds=0.2, max_attempts=2, concurrency=2):
            await until(lambda: statuses(tables) == {"dead": 1}, "death")
    finally:
        released.set()
    assert [row["outcome"] for row in attempts(tables)] == ["timed_out", "timed_out"]


async def test_an_endless_loop_in_a_thread_is_ended(store: Store, tables: Tables, serve: Serve) -> None:
    def spins(mail: Mail) -> None:
        while True:
            mail.header("x")

    await seed_store(store, [mail_values(1)])
    async with serve(spins, timeout_seconds=0.3, max_attempts=1) as running:
        await until(lambda: statuses(tables) == {"dead": 1}, "death")
        await until(lambda: running.sample("ops_mail_handler_hung") == 0, "the thread's end")
    assert [row["outcome"] for row in attempts(tables)] == ["timed_out"]


async def test_when_every_slot_hangs_the_process_counts_as_stuck(store: Store, tables: Tables, serve: Serve) -> None:
    released = threading.Event()

    def hangs(_mail: Mail) -> None:
        released.wait(60)

    await seed_store(store, [mail_values(uid) for uid in range(1, 9)])
    try:
        async with serve(hangs, timeout_seconds=0.1, concurrency=1) as running:
            await until(lambda: "hang and cannot be ended" in running.pulse.doing, "the verdict")
            released.set()
    finally:
        released.set()
    assert statuses(tables)["landed"] >= 4, "no more were taken"


async def test_an_async_handler_that_hangs_is_cancelled(store: Store, tables: Tables, serve: Serve) -> None:
    cancelled = []

    async def hangs(mail: Mail) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(mail.uid)
            raise

    await seed_store(store, [mail_values(1)])
    async with serve(hangs, timeout_seconds=0.3, max_attempts=1):
        await until(lambda: statuses(tables) == {"dead": 1}, "death")
    assert cancelled == [1]
    assert [row["outcome"] for row in attempts(tables)] == ["timed_out"]


async def test_an_async_handler_that_blocks_its_loop_delays_neither_the_process_nor_the_others_for_long(
    store: Store, tables: Tables, serve: Serve
) -> None:
    released = threading.Event()

    async def blocks(mail: Mail) -> None:
        if mail.uid == 1:
            released.wait(60)  # no await: the whole loop stands still
        await asyncio.sleep(0.01)

    await seed_store(store, [mail_values(1)])
    loop, lags = asyncio.get_running_loop(), []
    try:
        async with serve(blocks, timeout_seconds=1.0, max_attempts=1):
            await until(lambda: statuses(tables) == {"processing": 1}, "the claim")
            await seed_store(store, [mail_values(uid) for uid in range(2, 6)])
            done = asyncio.create_task(until(lambda: statuses(tables) == {"done": 4, "dead": 1}, "ends"))
            while not done.done():
                before = loop.time()
                await asyncio.sleep(0.02)
                lags.append(loop.time() - before - 0.02)
            await done
            released.set()
    finally:
        released.set()
    outcomes = [row["outcome"] for row in attempts(tables)]
    assert outcomes.count("timed_out") == 1
    assert set(outcomes) <= {"timed_out", "done", "abandoned"}, "those that were held up were not to blame"
    assert max(lags) < 0.9, "the main loop went on"


async def test_in_order_a_mailbox_is_handled_by_uid_and_a_dead_mail_stops_it(
    store: Store, tables: Tables, serve: Serve, effects: Effects
) -> None:
    def note(mail: Mail) -> None:
        effects.add(f"{mail.folder} {mail.uid}")
        if (mail.folder, mail.uid) == ("INBOX", 4):
            raise Permanent("no")

    rows = [mail_values(uid) for uid in (5, 3, 1, 4, 2)] + [mail_values(uid, folder="B") for uid in (2, 1)]
    await seed_store(store, rows)
    async with serve(note, order=HandlerOrder.UID):
        await until(lambda: statuses(tables) == {"done": 5, "dead": 1, "landed": 1}, "ends")
        await asyncio.sleep(0.3)
    assert [line for line in effects.all() if line.startswith("INBOX")] == [f"INBOX {uid}" for uid in (1, 2, 3, 4)]
    assert [line for line in effects.all() if line.startswith("B")] == ["B 1", "B 2"]


async def test_a_stop_lets_short_work_end_and_gives_the_rest_back_uncounted(
    store: Store, tables: Tables, serve: Serve
) -> None:
    begun = set()

    async def slow(mail: Mail) -> None:
        begun.add(mail.uid)
        await asyncio.sleep(0.3 if mail.uid == 1 else 60)

    await seed_store(store, [mail_values(uid) for uid in range(1, 4)])
    async with serve(slow, grace=4.0):
        await until(lambda: len(begun) == 3, "the handlers")
        started = time.monotonic()
    assert time.monotonic() - started < 4
    rows = tables.rows("SELECT uid, status, attempts, attempts_forgiven FROM ops_mail_message ORDER BY uid")
    assert [tuple(row.values()) for row in rows] == [(1, "done", 1, 0), (2, "retry", 1, 1), (3, "retry", 1, 1)]
    assert [row["outcome"] for row in attempts(tables)] == ["done", "abandoned", "abandoned"]

    async def quick(_mail: Mail) -> None:
        return None

    async with serve(quick):
        await until(lambda: statuses(tables) == {"done": 3}, "the next process")


async def test_a_stop_does_not_wait_for_a_thread_and_nobody_takes_its_mail_meanwhile(
    store: Store, tables: Tables, serve: Serve
) -> None:
    released = threading.Event()

    begun = threading.Event()

    def stuck(_mail: Mail) -> None:
        begun.set()
        released.wait(60)

    await seed_store(store, [mail_values(1)])
    try:
        async with serve(stuck, grace=4.0):
            await until(begun.is_set, "the handler")
            started = time.monotonic()
        assert time.monotonic() - started < 4.0
    finally:
        released.set()
    (row,) = tables.rows("SELECT * FROM ops_mail_message")
    assert row["status"] == "retry"
    assert (utc(row["next_attempt_at"]) - utc(row["updated_at"])).total_seconds() == pytest.approx(5.0, abs=0.01)


async def test_what_a_handler_reads_is_what_was_received(
    store: Store, tables: Tables, serve: Serve, tmp_path: Path
) -> None:
    big = b"x" * 700_000 + bytes(range(256)) * 1000
    raw = mail_with(big)
    await land(store, raw, tmp_path)
    seen: dict[str, object] = {}

    def read(mail: Mail) -> None:
        (attachment,) = mail.attachments
        attachment.content.save(tmp_path / "saved.bin")
        seen.update(raw=hashlib.sha256(mail.raw.read()).hexdigest(), name=attachment.filename,
                    to=mail.to_addrs[0].addr, text=mail.text_body)  # fmt: skip

    async with serve(read):
        await until(lambda: statuses(tables) == {"done": 1}, "done")
    assert (tmp_path / "saved.bin").read_bytes() == big
    assert seen["raw"] == hashlib.sha256(raw).hexdigest()
    assert (seen["name"], seen["to"], str(seen["text"]).strip()) == ("big.bin", "ops@example.org", "hello")

    async def read_async(mail: Mail) -> None:
        with pytest.raises(TypeError, match="aread"):
            mail.raw.read()
        seen["async"] = hashlib.sha256(await mail.raw.aread()).hexdigest()
        await mail.attachments[0].content.asave(tmp_path / "again.bin")

    tables.execute("UPDATE ops_mail_message SET status = 'landed', next_attempt_at = NULL")
    async with serve(read_async):
        await until(lambda: statuses(tables) == {"done": 1}, "done again")
    assert seen["async"] == seen["raw"]
    assert (tmp_path / "again.bin").read_bytes() == big


async def test_writes_of_a_handler_are_exactly_once(store: Store, tables: Tables, serve: Serve) -> None:
    tables.execute("CREATE TABLE ops_count (mail_key VARCHAR(200) PRIMARY KEY)")

    def count(mail: Mail) -> Done:
        return Done({"ok": True}, writes=[Write("INSERT INTO ops_count (mail_key) VALUES (:key)", {"key": mail.key})])

    await seed_store(store, [mail_values(uid) for uid in range(1, 21)])
    async with serve(count):
        await until(lambda: statuses(tables) == {"done": 20}, "all done")
    assert tables.value("SELECT COUNT(*) FROM ops_count") == 20
    tables.execute("UPDATE ops_mail_message SET status = 'landed' WHERE uid = 1")
    async with serve(count):
        await until(lambda: statuses(tables).get("retry") == 1, "the refusal")
    (row,) = tables.rows("SELECT last_error FROM ops_mail_message WHERE uid = 1")
    assert "what the handler wanted to write was refused" in row["last_error"]


async def test_a_receiver_that_wants_a_pause_gets_one(store: Store, tables: Tables, serve: Serve) -> None:
    def overloaded(mail: Mail) -> None:
        raise RetryLater("too many", seconds=30, pause_all=True)

    await seed_store(store, [mail_values(uid) for uid in range(1, 31)])
    async with serve(overloaded, concurrency=2):
        await until(lambda: len(attempts(tables)) >= 1, "an attempt")
        await asyncio.sleep(2.5)
    assert len(attempts(tables)) <= 4
    assert statuses(tables)["landed"] >= 26


def mail_with(content: bytes) -> bytes:
    return (
        b"From: Ann <ann@example.org>\r\nTo: ops@example.org\r\nSubject: files\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nhello\r\n'
        b'--b\r\nContent-Type: application/octet-stream; name="big.bin"\r\nContent-Disposition: attachment; '
        b'filename="big.bin"\r\nContent-Transfer-Encoding: base64\r\n\r\n'
        + base64.encodebytes(content)
        + b"\r\n--b--\r\n"
    )


async def land(store: Store, raw: bytes, spool: Path) -> None:
    listed = Listed(Uid(1), len(raw), datetime(2026, 1, 5, tzinfo=UTC), ())
    prepared = prepare(RawMail(listed, raw), spool, PrepareLimits(), lambda _seconds: nullcontext())
    guard = Guard(store, "host:1:x", 10)
    lease = await guard.try_acquire(FolderKey(MAILBOX, "INBOX"))
    assert lease is not None
    await store.start_cursor(lease, UidValidity(7), Uid(0), Uid(0))
    await store.land(lease, LandingBatch(UidValidity(7), (prepared,), Uid(1), datetime.now(UTC)))
    await guard.close()
