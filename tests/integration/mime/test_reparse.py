"""`ops-mail reparse`: what is derived comes back as it would land now, and nothing else moves."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pty
import select
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from ops_mail.cli.choosing import who
from ops_mail.errors import OpsMailError
from ops_mail.store import open_store
from ops_mail.store.reparse_run import Tally
from tests.integration.mime.stored import (
    KEY,
    OTHER,
    attachments,
    audits,
    land,
    messages,
    reparse,
    reparse_here,
    spoil,
    start_reparse,
    without,
)
from tests.servers.process import SqlServer
from tests.servers.tables import Tables

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
LONG_TEXT = "line of text, ähnlich lang wie viele\n" * 12_000


def small(number: int) -> bytes:
    return f"From: a@example.org\r\nSubject: =?utf-8?q?gr=C3=BCn_{number}?=\r\n\r\nbody of {number}\r\n".encode()


def large(payload: bytes) -> bytes:
    return (
        b"From: Ann <ann@example.org>\r\nSubject: large\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
        b"--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
        + LONG_TEXT.encode()
        + b"\r\n--b\r\nContent-Disposition: attachment; filename=x.bin\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        + base64.encodebytes(payload)
        + b"\r\n--b--\r\n"
    )


def some_mails() -> list[bytes]:
    """A few of every kind: a share of the corpus, small ones, one beyond every limit of memory and statement."""
    names = [line.split("\t")[0] for line in (CORPUS / "INDEX.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    return [*((CORPUS / name).read_bytes() for name in names[::40]), small(1), large(os.urandom(3_000_000))]


def in_every_status(url: str) -> None:
    """As handlers and operators leave mails, and as they hold them."""
    tables = Tables(url)
    soon = "'2037-01-01 00:00:00.000000'"
    for at, values in enumerate(
        (
            "status = 'done', attempts = 2",
            "status = 'dead', attempts = 5, last_error = 'no', attempts_forgiven = 1",
            f"status = 'processing', attempts = 1, lease_id = 'mine', lease_until = {soon}, crashes = 1",
            f"status = 'retry', attempts = 1, next_attempt_at = {soon}, last_error = 'later'",
            "status = 'skipped', attempts = 1",
            f"after_action_at = {soon}",
        )
    ):
        tables.execute(f"UPDATE ops_mail_message SET {values} WHERE id % 7 = {at}")


async def content(url: str, sha256: str) -> bytes:
    store = open_store(url, lease_seconds=10)
    try:
        return await store.read_blob(sha256)
    finally:
        await store.close(2)


def test_what_is_derived_is_restored_and_nothing_else_moves(database_url: str, tmp_path: Path) -> None:
    land(database_url, some_mails())
    in_every_status(database_url)
    before, files_before = messages(database_url), attachments(database_url)
    cursor, blobs = Tables(database_url).cursor(), Tables(database_url).count_of("ops_mail_blob")
    spoil(database_url)
    lost = files_before[-1]["sha256"]
    for table in ("ops_mail_blob", "ops_mail_blob_chunk"):
        Tables(database_url).execute(f"DELETE FROM {table} WHERE sha256 = :hash", hash=lost)

    total = len(before)
    assert reparse(database_url, tmp_path) == (0, f"parsed {total}, changed {total}, skipped 0, failed 0\n", "")
    after = messages(database_url)
    assert without(after, "updated_at") == without(before, "updated_at")
    assert all(new["updated_at"] > old["updated_at"] for new, old in zip(after, before, strict=True))
    assert attachments(database_url) == files_before
    assert len(asyncio.run(content(database_url, lost))) == files_before[-1]["size_bytes"] == 3_000_000
    assert Tables(database_url).count_of("ops_mail_blob") == blobs
    assert Tables(database_url).cursor() == cursor
    assert list(tmp_path.glob("ops-mail-spool-*")) == []

    assert reparse_here(database_url) == Tally(parsed=total)
    assert messages(database_url) == after, "a run that finds nothing to change writes to no mail"
    first, second = audits(database_url, "reparsed")
    assert (first["actor"], first["mailbox"], first["message_pk"]) == ("operator", None, None)
    assert f'"changed":{total}' in str(first["detail"]).replace(" ", "")
    assert '"finished":true' in str(second["detail"]).replace(" ", "")
    assert audits(database_url, "released") == []


def test_a_quarantined_mail_that_parses_now_is_landed_and_the_others_stay(database_url: str) -> None:
    land(database_url, [small(number) for number in range(4)])
    before = messages(database_url)
    tables = Tables(database_url)
    tables.execute("UPDATE ops_mail_message SET status = 'quarantined', last_error = 'a fault' WHERE uid <= 2")
    tables.execute("UPDATE ops_mail_message SET raw_sha256 = NULL WHERE uid = 2")  # never received
    tables.execute("UPDATE ops_mail_message SET status = 'dead', last_error = 'no' WHERE uid = 3")
    spoil(database_url, "uid <> 2")
    assert reparse_here(database_url) == Tally(parsed=3, changed=3, skipped=1)
    rows = messages(database_url)
    assert [(row["status"], row["last_error"]) for row in rows] == [
        ("landed", None),
        ("quarantined", "a fault"),
        ("dead", "no"),
        ("landed", None),
    ]
    assert rows[0]["subject"] == before[0]["subject"] == "grün 0"
    (released,) = audits(database_url, "released")
    assert (released["actor"], released["mailbox"], released["message_pk"]) == (
        "operator",
        KEY.mailbox,
        rows[0]["id"],
    )
    detail = released["detail"]
    assert (json.loads(detail) if isinstance(detail, str) else detail) == {
        "by": who(),
        "was": "quarantined",
        "error": "a fault",
    }


def test_mails_without_bytes_are_skipped_and_lost_bytes_are_a_failure(database_url: str, tmp_path: Path) -> None:
    land(database_url, [small(number) for number in range(5)])
    tables = Tables(database_url)
    tables.execute("UPDATE ops_mail_message SET raw_sha256 = NULL WHERE uid = 1")
    tables.execute("UPDATE ops_mail_message SET content_removed_at = landed_at WHERE uid IN (2, 3)")
    lost = {row["uid"]: row for row in messages(database_url)}
    for uid in (3, 4):  # of 3 by retention, of 4 by an accident
        tables.execute("DELETE FROM ops_mail_blob_chunk WHERE sha256 = :hash", hash=lost[uid]["raw_sha256"])
    spoil(database_url)
    before = messages(database_url)
    code, out, err = reparse(database_url, tmp_path)
    assert (code, out) == (1, "parsed 1, changed 1, skipped 3, failed 1\n")
    assert f"mail {lost[4]['id']}: content {lost[4]['raw_sha256']} is not where OPS_MAIL_STORE_URL leads (db:): " in err
    assert err.endswith(f"not parsed, and left as they were: {lost[4]['id']}\n")
    after = messages(database_url)
    assert after[:4] == before[:4]
    assert after[4]["subject"] == "grün 4"


def test_an_oversize_mail_keeps_its_status_and_has_its_header_read(database_url: str) -> None:
    land(database_url, [b"From: a@example.org\r\nSubject: too large\r\nContent-Type: text/html\r\n\r\n"], oversize=True)
    before = messages(database_url)
    assert (before[0]["status"], before[0]["size_bytes"], before[0]["html_body"]) == ("oversize", 60_000_000, None)
    spoil(database_url)
    assert reparse_here(database_url) == Tally(parsed=1, changed=1)
    assert without(messages(database_url), "updated_at") == without(before, "updated_at")


def test_a_part_of_the_mails_by_id_and_by_mailbox(database_url: str) -> None:
    land(database_url, [small(number) for number in range(4)])
    land(database_url, [small(number) for number in range(4, 6)], OTHER)
    good = without(messages(database_url), "updated_at")
    ids = [row["id"] for row in good]
    spoil(database_url)
    assert reparse_here(database_url, mailbox=OTHER.mailbox) == Tally(parsed=2, changed=2)
    assert _good(database_url, good) == ids[4:]
    assert audits(database_url, "reparsed")[0]["mailbox"] == OTHER.mailbox
    assert reparse_here(database_url, since=ids[1]) == Tally(parsed=4, changed=2)
    assert _good(database_url, good) == ids[2:]
    with pytest.raises(OpsMailError, match=r"mailbox nobody is .* there: ops@example\.org, sales@example\.org$"):
        reparse_here(database_url, mailbox="nobody")


def _good(url: str, wanted: list[dict[str, object]]) -> list[object]:
    rows = without(messages(url), "updated_at")
    return [row["id"] for row, good in zip(rows, wanted, strict=True) if row == good]


def test_killed_in_the_middle_it_goes_on_where_it_was(database_url: str, tmp_path: Path) -> None:
    land(database_url, [small(number) for number in range(240)])
    good = without(messages(database_url), "updated_at")
    ids = [row["id"] for row in good]
    spoil(database_url)
    tables = Tables(database_url)
    with start_reparse(database_url, tmp_path) as process:
        while not (_position(tables) > ids[60]):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.kill()
    stopped_at = _position(tables)
    assert ids[60] < stopped_at < ids[-1]
    spoil(database_url, f"id = {ids[0]}")  # were it to begin again, it would find this one

    code, out, err = reparse(database_url, tmp_path)
    assert code == 0
    assert err.startswith(f"going on after mail {stopped_at},")
    assert out.startswith("parsed 240, ")
    assert out.endswith("skipped 0, failed 0\n")
    assert _good(database_url, good) == ids[1:]
    assert len(audits(database_url, "reparsed")) == 1
    assert list(tmp_path.glob("ops-mail-spool-*")) == [], "what the killed one left is gone too"

    assert reparse_here(database_url, since=0) == Tally(parsed=240, changed=1)
    assert _good(database_url, good) == ids
    assert len(audits(database_url, "reparsed")) == 2


def test_on_a_terminal_it_shows_how_far_it_is_and_ctrl_c_stops_it_in_order(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/ops-mail.db"
    land(url, [small(number) for number in range(500)])
    spoil(url)
    tables = Tables(url)
    terminal, inside = pty.openpty()
    with start_reparse(url, tmp_path, stderr=inside) as process:
        os.close(inside)
        shown = b""
        with closing(sqlite3.connect(tmp_path / "ops-mail.db", timeout=20, isolation_level=None)) as lock:
            while True:
                while b" of 500 " not in shown or select.select([terminal], [], [], 0.01)[0]:
                    shown += os.read(terminal, 65536)
                # Nobody else can write now: it cannot come to its end, however fast it is.
                lock.execute("BEGIN IMMEDIATE")
                if _position(tables) >= 100:
                    break
                lock.execute("ROLLBACK")
            process.send_signal(signal.SIGINT)
            lock.execute("ROLLBACK")
        shown += _rest(terminal)
        out, _ = process.communicate()
    os.close(terminal)
    assert (process.returncode, out) == (130, "")
    assert b"mail 0 of 500" in shown
    assert b"\x1b[?25h" in shown, "the cursor is visible again"
    assert shown.endswith(b"stopped; the same command goes on where it was\r\n")
    assert b"Traceback" not in shown
    assert list(tmp_path.glob("ops-mail-spool-*")) == []
    assert 100 <= _position(tables) < 500
    assert reparse_here(url).parsed == 500
    assert len(audits(url, "reparsed")) == 1


def _rest(terminal: int) -> bytes:
    """All that is written until the other end is closed."""
    found = b""
    while True:
        try:
            found += os.read(terminal, 65536)
        except OSError:  # EIO: nobody holds the other end any more
            return found


def _position(tables: Tables) -> int:
    expression = "JSON_EXTRACT(detail, '$.position')"
    return int(tables.value(f"SELECT {expression} FROM ops_mail_audit WHERE action = 'reparsed'") or 0)


def test_contents_outside_of_the_database_are_read_and_written_too(tmp_path: Path) -> None:
    url, place = f"sqlite+aiosqlite:///{tmp_path}/ops-mail.db", f"file://{tmp_path}/contents"
    land(url, [small(1), large(os.urandom(2_000_000))], store_url=place)
    assert Tables(url).count_of("ops_mail_blob_chunk") == 0
    before, files = without(messages(url), "updated_at"), attachments(url)
    spoil(url)
    lost = files[0]["sha256"]
    (kept,) = (tmp_path / "contents").rglob(f"{lost}*")
    kept.unlink()
    assert reparse_here(url, STORE_URL=place) == Tally(parsed=2, changed=2)
    assert (without(messages(url), "updated_at"), attachments(url)) == (before, files)
    assert kept.exists()
    assert Tables(url).count_of("ops_mail_blob_chunk") == 0


def test_a_row_that_a_handler_is_writing_is_waited_for(sql_server: SqlServer) -> None:
    url = sql_server.create_database()
    land(url, [small(number) for number in range(3)])
    good = messages(url)
    spoil(url)
    tables = Tables(url)
    with tables._engine.connect() as connection:
        connection.exec_driver_sql("UPDATE ops_mail_message SET status = 'done', attempts = 1 WHERE uid = 2")
        release = threading.Timer(2, connection.commit)
        release.start()
        try:
            assert reparse_here(url) == Tally(parsed=3, changed=3)
        finally:
            release.join()
    rows = messages(url)
    assert [row["subject"] for row in rows] == [row["subject"] for row in good]
    assert [(row["status"], row["attempts"]) for row in rows] == [("landed", 0), ("done", 1), ("landed", 0)]
