"""One contract for all three places of contents: tables, files, a bucket; and what retention takes away from them."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ops_mail.core.health import Pulse
from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import Listed, RawMail
from ops_mail.errors import StoreRefused, StoreUnavailable
from ops_mail.maintenance.retention import Retention
from ops_mail.metrics import Metrics
from ops_mail.mime.prepare import PrepareLimits, prepare
from ops_mail.store import Guard, LandingBatch, Lease, Store, open_store
from ops_mail.store.blob_choice import delete_of, keep_contents_in
from ops_mail.store.blob_removal import remove_all_unused
from ops_mail.store.blobs import DatabaseBlobs
from ops_mail.store.blobs_external import ExternalBlobs
from ops_mail.store.blobs_file import FileObjects
from ops_mail.store.retention import Removed, remove_old_contents
from tests.handlers.seeding import MAILBOX
from tests.integration.handlers.test_service import mail_with
from tests.servers.s3 import S3Server
from tests.servers.tables import Tables

PLACES = ("db", "file", "s3")
V1 = UidValidity(7)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    server = S3Server()
    server.start()
    yield server
    server.stop()


@dataclass
class Kept:
    """A store whose contents are kept in `place`, and the lease to land mails with."""

    store: Store
    lease: Lease
    place: str
    folder: Path
    server: S3Server | None

    async def land(self, uid: int, raw: bytes) -> None:
        listed = Listed(Uid(uid), len(raw), datetime(2026, 1, 5, tzinfo=UTC), ())
        one = prepare(RawMail(listed, raw), self.folder, PrepareLimits(), lambda _seconds: nullcontext())
        await self.store.land(self.lease, LandingBatch(V1, (one,), Uid(uid), datetime.now(UTC)))

    def objects(self) -> int:
        """How many contents there are in the place."""
        if self.server is not None:
            return len(self.server.objects)
        if self.place == "file":
            return sum(1 for one in (self.folder / "contents").rglob("*") if one.is_file())
        return -1

    async def remove(self, days: int = 30) -> Removed:
        return await remove_old_contents(self.store.database, days, asyncio.Event(), delete_of(self.store), batch=3)


@pytest.fixture(params=PLACES)
async def kept(
    request: pytest.FixtureRequest, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Kept]:
    store = open_store(database_url, lease_seconds=30)
    await store.migrate()
    server: S3Server | None = None
    if request.param == "file":
        keep_contents_in(store, f"file://{tmp_path}/contents")
    elif request.param == "s3":
        server = request.getfixturevalue("s3")
        server.objects.clear()
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        keep_contents_in(store, "s3://bucket/some/prefix")
    guard = Guard(store, "host:1:x", 30)
    lease = await guard.try_acquire(FolderKey(MAILBOX, "INBOX"))
    assert lease is not None
    await store.start_cursor(lease, V1, Uid(0), Uid(0))
    yield Kept(store, lease, request.param, tmp_path, server)
    if server is not None:
        server.failing = False
    await guard.close()
    await store.close(2)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def age(tables: Tables, where: str = "1 = 1") -> None:
    old = "'2020-01-01 00:00:00'"
    tables.execute(f"UPDATE ops_mail_message SET landed_at = {old}, updated_at = {old} WHERE {where}")


async def test_content_comes_back_to_the_last_bit_and_is_kept_once(kept: Kept) -> None:
    large = noise(7_000_000)
    raw = mail_with(large)
    await kept.land(1, raw)
    await kept.land(2, raw)
    assert await kept.store.read_blob(sha256(raw)) == raw
    assert await kept.store.read_blob(sha256(large)) == large
    assert kept.objects() in (-1, 2)
    with pytest.raises(StoreRefused, match="no content"):
        await kept.store.read_blob("0" * 64)


async def test_damage_is_noticed(kept: Kept, tables: Tables) -> None:
    raw = mail_with(noise(3000))
    await kept.land(1, raw)
    if kept.place == "db":
        tables.execute("UPDATE ops_mail_blob_chunk SET data = :data WHERE sha256 = :name", data=b"x", name=sha256(raw))
    elif kept.server is not None:
        for name in kept.server.objects:
            kept.server.objects[name] = (b"x", datetime.now(UTC))
    else:
        for one in (kept.folder / "contents").rglob("*.zst"):
            one.write_bytes(b"x")
    with pytest.raises(StoreRefused):
        await kept.store.read_blob(sha256(raw))


async def test_retention_takes_contents_of_old_finished_mails_alone(kept: Kept, tables: Tables) -> None:
    statuses = ("done", "skipped", "dead", "landed", "retry", "quarantined", "done")
    raws = [mail_with(noise(2000 + uid)) for uid in range(1, 8)]
    for uid, (raw, status) in enumerate(zip(raws, statuses, strict=True), 1):
        await kept.land(uid, raw)
        tables.execute("UPDATE ops_mail_message SET status = :status WHERE uid = :uid", status=status, uid=uid)
    age(tables, "uid < 7")  # the last one is done, but not old
    assert await kept.remove() == Removed(mails=2, blobs=4)
    for uid, raw in enumerate(raws, 1):
        (row,) = tables.rows("SELECT * FROM ops_mail_message WHERE uid = :uid", uid=uid)
        assert (row["subject"], row["raw_sha256"], row["from_addr"]) == ("files", sha256(raw), "ann@example.org")
        if uid <= 2:
            assert (row["text_body"], row["headers"]) == (None, None)
            assert row["content_removed_at"] is not None
            with pytest.raises(StoreRefused):
                await kept.store.read_blob(sha256(raw))
        else:
            assert row["text_body"].strip() == "hello"
            assert await kept.store.read_blob(sha256(raw)) == raw
    assert kept.objects() in (-1, 10)
    assert await kept.remove() == Removed(), "once is enough"
    assert tables.value("SELECT COUNT(*) FROM ops_mail_audit WHERE action = 'content_removed'") >= 1


@pytest.mark.parametrize("kept", ["db"], indirect=True)
async def test_the_age_of_a_mail_is_that_of_its_end_whatever_changed_the_row_since(kept: Kept, tables: Tables) -> None:
    """A reparse, or new numbers on the server, make nothing younger; an operator's discard is an end of its own."""
    ends = (("done", "done", "old"), ("done", "done", "new"), ("skipped", "skipped", "old"), ("skipped", "dead", "old"))
    times = {"old": "2020-01-02 00:00:00", "new": "2100-01-01 00:00:00"}
    for uid, (status, outcome, ended) in enumerate(ends, 1):
        await kept.land(uid, mail_with(noise(1500 + uid)))
        tables.execute(
            "UPDATE ops_mail_message SET status = :status, landed_at = '2020-01-01 00:00:00' WHERE uid = :uid",
            status=status, uid=uid,
        )  # fmt: skip
        for number, (each, at) in enumerate((("retry", times["old"]), (outcome, times[ended])), 1):
            tables.execute(
                "INSERT INTO ops_mail_attempt (message_pk, attempt_no, handler, instance, started_at, finished_at, "
                "outcome) SELECT id, :number, 'h', 'i', landed_at, :at, :each FROM ops_mail_message WHERE uid = :uid",
                number=number, at=at, each=each, uid=uid,
            )  # fmt: skip
    assert (await kept.remove()).mails == 2
    removed = tables.rows("SELECT uid FROM ops_mail_message WHERE content_removed_at IS NOT NULL ORDER BY uid")
    assert [row["uid"] for row in removed] == [1, 3]


@pytest.mark.parametrize("kept", ["db"], indirect=True)
async def test_the_process_removes_by_itself_what_is_old_and_ends_with_a_stop(kept: Kept, tables: Tables) -> None:
    await kept.land(1, mail_with(noise(1600)))
    tables.execute("UPDATE ops_mail_message SET status = 'done'")
    age(tables)
    stop, ready, metrics = asyncio.Event(), asyncio.Event(), Metrics()
    kept.store.database.on_audit = metrics.count_audit
    pulse = Pulse("retention", time.monotonic)
    retention = Retention(kept.store, days=30, random=lambda: -0.5, stop=stop, schema_ready=ready, pulse=pulse)
    work = asyncio.create_task(retention.run())
    ready.set()
    while tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE content_removed_at IS NOT NULL") == 0:
        assert not work.done()
        await asyncio.sleep(0.05)
    stop.set()
    await work
    assert metrics.registry.get_sample_value("ops_mail_audit_total", {"action": "content_removed"}) == 1


async def test_content_that_another_mail_needs_stays(kept: Kept, tables: Tables) -> None:
    raw = mail_with(noise(2500))
    await kept.land(1, raw)
    await kept.land(2, raw)
    tables.execute("UPDATE ops_mail_message SET status = 'done' WHERE uid = 1")
    age(tables)
    assert await kept.remove() == Removed(mails=1, blobs=0)
    assert await kept.store.read_blob(sha256(raw)) == raw
    tables.execute("UPDATE ops_mail_message SET status = 'done'")
    age(tables)
    assert (await kept.remove()).blobs == 2
    await kept.land(3, raw)
    assert await kept.store.read_blob(sha256(raw)) == raw, "it can come again"


async def test_what_nothing_refers_to_is_collected(kept: Kept, tables: Tables) -> None:
    raw = mail_with(noise(2600))
    await kept.land(1, raw)
    tables.execute("DELETE FROM ops_mail_attachment")
    assert await remove_all_unused(kept.store.database, asyncio.Event(), delete_of(kept.store)) == 1
    assert await kept.store.read_blob(sha256(raw)) == raw
    assert kept.objects() in (-1, 1)


async def test_collecting_never_takes_content_away_from_a_landing(kept: Kept, tables: Tables) -> None:
    """The same content lands again and again while it is collected whenever nobody refers to it."""
    raw = mail_with(noise(2700))
    stop = asyncio.Event()

    async def collect() -> None:
        while not stop.is_set():
            await remove_all_unused(kept.store.database, stop, delete_of(kept.store))

    collector = asyncio.create_task(collect())
    for uid in range(1, 25):
        await kept.land(uid, raw)
        assert await kept.store.read_blob(sha256(raw)) == raw
        await asyncio.to_thread(tables.execute, "DELETE FROM ops_mail_attachment")
        await asyncio.to_thread(tables.execute, "DELETE FROM ops_mail_message")
        await asyncio.sleep(0)
    stop.set()
    await collector


async def test_objects_that_a_failed_landing_left_are_collected_when_old(kept: Kept) -> None:
    if not isinstance(kept.store.blobs, ExternalBlobs):
        assert kept.place == "db", "tables have no such objects: rows come and go with their transaction"
        return
    raw = mail_with(noise(2800))
    await kept.land(1, raw)
    await kept.store.blobs.objects.write("ab/cd/" + "ab" * 32 + ".zst", [b"left behind"])
    assert await kept.store.blobs.remove_orphans(asyncio.Event()) == 0, "it may belong to a landing in flight"
    await asyncio.sleep(1.1)
    assert await kept.store.blobs.remove_orphans(asyncio.Event(), older_than_seconds=0) == 1
    assert await kept.store.read_blob(sha256(raw)) == raw


async def test_a_lost_object_is_written_again_with_the_next_mail_that_has_it(kept: Kept) -> None:
    if not isinstance(kept.store.blobs, ExternalBlobs):
        assert kept.place == "db", "tables cannot lose one without the other"
        return
    raw = mail_with(noise(2900))
    await kept.land(1, raw)
    await kept.store.blobs.delete_object(sha256(raw), "zstd")
    with pytest.raises(StoreRefused):
        await kept.store.read_blob(sha256(raw))
    await kept.land(2, raw)
    assert await kept.store.read_blob(sha256(raw)) == raw


@pytest.mark.parametrize("kept", ["file"], indirect=True)
async def test_after_a_change_of_store_it_is_told_where_content_is_and_the_next_mail_brings_it_along(
    kept: Kept, tables: Tables
) -> None:
    raw, old, new = mail_with(noise(3200)), f"file://{kept.folder}/contents", f"file://{kept.folder}/new"
    await kept.land(1, raw)
    in_files = kept.store.blobs

    kept.store.blobs = DatabaseBlobs(kept.store.database)
    with pytest.raises(StoreRefused, match=rf"kept in {old}; .* set OPS_MAIL_STORE_URL to that \(it leads to db: now"):
        await kept.store.read_blob(sha256(raw))
    keep_contents_in(kept.store, f"{new}/")
    with pytest.raises(StoreRefused, match=f"is kept in {old}; .* leads to {new} now"):
        await kept.store.read_blob(sha256(raw))

    await kept.land(2, raw)
    assert await kept.store.read_blob(sha256(raw)) == raw
    kept.store.blobs = DatabaseBlobs(kept.store.database)
    with pytest.raises(StoreRefused, match=f"is kept in {new}"):
        await kept.store.read_blob(sha256(raw))
    await kept.land(3, raw)
    assert await kept.store.read_blob(sha256(raw)) == raw
    kept.store.blobs = in_files
    assert await kept.store.read_blob(sha256(raw)) == raw, "what is in the database is found whatever the setting"

    tables.execute("DELETE FROM ops_mail_blob_chunk")
    tables.execute("UPDATE ops_mail_blob SET place = NULL")  # as a program that did not note places would have it
    kept.store.blobs = DatabaseBlobs(kept.store.database)
    with pytest.raises(
        StoreRefused, match="or it is in the directory or bucket that this setting named when the mail landed"
    ):
        await kept.store.read_blob(sha256(raw))


@pytest.mark.parametrize("later", ["db:", "another folder"])
@pytest.mark.parametrize(("kept", "database_url"), [("file", "sqlite")], indirect=True)
async def test_retention_reaches_where_store_url_led_before(
    kept: Kept, tables: Tables, tmp_path: Path, later: str
) -> None:
    raw = mail_with(noise(2950))
    await kept.land(1, raw)
    assert kept.objects() == 2
    tables.execute("UPDATE ops_mail_message SET status = 'done'")
    age(tables)
    kept.store.blobs = DatabaseBlobs(kept.store.database)
    if later != "db:":
        keep_contents_in(kept.store, f"file://{tmp_path}/later")
    away = (tmp_path / "contents").rename(tmp_path / "not mounted")
    with capture_logs() as logs:
        assert await kept.remove() == Removed(mails=1, blobs=0)
    told = [line["error"] for line in logs if line["event"] == "content_not_removed"]
    assert told == [f"file://{tmp_path}/contents: there is no such place on this machine"] * 2
    away.rename(tmp_path / "contents")
    assert await remove_all_unused(kept.store.database, asyncio.Event(), delete_of(kept.store)) == 2
    assert (kept.objects(), tables.value("SELECT COUNT(*) FROM ops_mail_blob")) == (0, 0)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_place_that_is_away_delays_landing_and_loses_nothing(kept: Kept, tables: Tables) -> None:
    raw = mail_with(noise(3100))
    if kept.server is not None:
        kept.server.failing = True
    elif kept.place == "file":
        (kept.folder / "contents").write_bytes(b"a file where a folder should be")
    else:
        await kept.land(1, raw)
        return
    with pytest.raises(StoreUnavailable):
        async with asyncio.timeout(60):
            await kept.land(1, raw)
    assert tables.value("SELECT COUNT(*) FROM ops_mail_message") == 0
    if kept.server is not None:
        kept.server.failing = False
    else:
        (kept.folder / "contents").unlink()
    await kept.land(1, raw)
    assert await kept.store.read_blob(sha256(raw)) == raw


async def test_a_file_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    seen: list[list[str]] = []

    class Slow(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            yield b"one"
            seen.append(sorted(one.name for one in (tmp_path / "ab" / "cd").iterdir()))
            yield b"two"

    await objects.write("ab/cd/name", Slow())
    assert all(not name.endswith("name") for name in seen[0])
    assert (tmp_path / "ab" / "cd" / "name").read_bytes() == b"onetwo"
    assert [one.name for one in (tmp_path / "ab" / "cd").iterdir()] == ["name"]
