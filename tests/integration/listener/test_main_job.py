"""The main job, as an operator sees it: the real process between a real Dovecot and a real database."""

from __future__ import annotations

import hashlib
import statistics
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.integration.listener.settings import imap_settings
from tests.servers.dovecot import Dovecot
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

BACKLOG = 3000
LIVE = 50


def mail(number: int) -> bytes:
    return (
        f"From: =?utf-8?b?5byg5LiJ?= <zhang@example.org>\r\nTo: ops@example.org\r\nSubject: mail {number}\r\n"
        f"Message-ID: <{number}@example.org>\r\nDate: Mon, 05 Jan 2026 10:00:00 +0800\r\n\r\nbody of {number}\r\n"
    ).encode()


def has_rows(tables: Tables, count: int) -> bool:
    return tables.count() == count


def sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def test_a_backlog_lands_once_and_in_order_and_live_mail_lands_at_once(
    request: pytest.FixtureRequest, dovecot: Dovecot, database_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    user = new_user()
    live = LIVE if "mariadb" in request.node.name else LIVE // 5  # Dovecot takes half a second to announce each
    uids = dovecot.append_many(user, "INBOX", [mail(number) for number in range(BACKLOG)])
    tables = Tables(database_url)
    with OpsMail(tmp_path, imap_settings(dovecot, user, database_url)) as process:
        process.wait_state("idling", 120)
        rows = tables.rows("SELECT uid, subject, from_name, raw_sha256, status FROM ops_mail_message ORDER BY id")
        assert [row["uid"] for row in rows] == uids
        assert [row["subject"] for row in rows] == [f"mail {number}" for number in range(BACKLOG)]
        assert [row["raw_sha256"] for row in rows] == [sha256(mail(number)) for number in range(BACKLOG)]
        assert {(row["from_name"], row["status"]) for row in rows} == {("张三", "landed")}
        assert tables.cursor()["last_uid"] == uids[-1]

        for number in range(BACKLOG, BACKLOG + live):
            dovecot.append(user, "INBOX", mail(number))
            process.wait_until(partial(has_rows, tables, number + 1), f"mail {number}", 10)
        landed = [line for line in process.lines() if line["event"] == "landed"]
        latencies = sorted(line["latency_seconds"] for line in landed if "latency_seconds" in line)
        assert len(latencies) >= live - 1
        print(
            f"landing latency after EXISTS: p50 {statistics.median(latencies) * 1000:.1f} ms, "
            f"max {latencies[-1] * 1000:.1f} ms on {database_url.split(':', 1)[0]}"
        )

        assert tables.hashes() == Counter(sha256(mail(number)) for number in range(BACKLOG + live))
        assert process.terminate() == 0
    assert "Traceback" not in process.log_text()


def test_the_row_is_complete(dovecot: Dovecot, database_url: str, new_user: Callable[[], str], tmp_path: Path) -> None:
    user = new_user()
    raw = (
        b"Return-Path: <bounce@example.org>\r\n"
        b"Authentication-Results: mx.example.org; spf=pass\r\n"
        b"From: Ann <ann@example.org>\r\nTo: Bob <bob@example.org>, carl@example.org\r\nCc: Dora <dora@example.org>\r\n"
        b"Reply-To: answers@example.org\r\nSubject: =?gb2312?B?tqm1pQ==?=\r\nDate: Mon, 05 Jan 2026 10:00:00 +0800\r\n"
        b"Message-ID: <whole@example.org>\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
        b"--b\r\nContent-Type: multipart/alternative; boundary=c\r\n\r\n"
        b"--c\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nplain text\r\n"
        b"--c\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>rich text</p>\r\n--c--\r\n"
        b'--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename="bill.pdf"\r\n'
        b"Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--b--\r\n"
    )
    with OpsMail(tmp_path, imap_settings(dovecot, user, database_url)) as process:
        process.wait_state("idling")
        uid = dovecot.append(user, "INBOX", raw, flags=(r"\Flagged",))
        tables = Tables(database_url)
        process.wait_until(lambda: tables.count() == 1, "the row", 10)
        (row,) = tables.rows("SELECT * FROM ops_mail_message")
        named = ("mailbox", "folder", "uid", "message_id", "subject", "from_name", "from_addr")
        assert {name: row[name] for name in named} == {
            "mailbox": user,
            "folder": "INBOX",
            "uid": uid,
            "message_id": "whole@example.org",
            "subject": "订单",
            "from_name": "Ann",
            "from_addr": "ann@example.org",
        }
        assert "bob@example.org" in str(row["to_addrs"])
        assert "carl@example.org" in str(row["to_addrs"])
        assert "dora@example.org" in str(row["cc_addrs"])
        assert "answers@example.org" in row["reply_to"]
        assert "bounce@example.org" in row["return_path"]
        assert "spf=pass" in row["auth_results"]
        assert str(row["sent_at"])[:19] == "2026-01-05 02:00:00"
        assert "plain text" in row["text_body"]
        assert "<p>rich text</p>" in row["html_body"]
        assert r"\\Flagged" in str(row["flags"])
        assert row["size_bytes"] == len(raw)
        assert row["raw_sha256"] == sha256(raw)
        (attachment,) = tables.rows("SELECT * FROM ops_mail_attachment")
        assert (attachment["filename"], attachment["content_type"], attachment["size_bytes"], attachment["sha256"]) == (
            "bill.pdf",
            "application/pdf",
            5,
            sha256(b"hello"),
        )
        assert attachment["message_pk"] == row["id"]
        flags = dovecot.contents(user, "INBOX")[uid][1]
        assert r"\Seen" not in flags, "the server's copy must not change"
