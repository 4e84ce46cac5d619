"""Rows for the tables that the page shows: a day of mail, dead letters with hostile subjects, four processes."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
HOSTILE_SUBJECTS = (
    SCRIPT,
    "Invoice \u202egnp.exe\u202c \u2066hidden\u2069 report",
    "long " + "x" * 10_000,
    "\x1b[31mred\x1b[0m \x07bell \x9b2J cleared",
    "before\x00after \ud83d broken".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    "\"'><svg/onload=alert(1)> {{ 7*7 }} {% raw %} </bdi></td></table>",
    "=?utf-8?q?not_decoded?= &lt;b&gt; &amp; %3Cscript%3E",
    "z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a\u032f\u031e\u0320\u034da\u036blgo",
    "عرض سعر جديد رقم 42 – quote",
    "报价单：二〇二六年十一月的订单",
)
HOSTILE_ADDRESS = "\"><script>document.title='owned'</script>\"@example.org"


def text(at: datetime) -> str:
    """A moment as the tables of SQLite hold it."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


class Rows:
    """Writes into a SQLite database whose tables exist."""

    def __init__(self, path: Path, now: datetime) -> None:
        self._path = path
        self.now = now
        self._uid = 0

    def cursor(self, mailbox: str, holder: str | None, state: str = "idling", **more: Any) -> None:
        """A folder's row; `holder` None = nobody holds it."""
        values: dict[str, Any] = {
            "mailbox": mailbox,
            "folder": "INBOX",
            "uid_validity": 1,
            "last_uid": 4211,
            "epoch": 3,
            "holder": holder,
            "lease_until": text(self.now + timedelta(days=1)) if holder else None,
            "state": state,
            "failures": 0,
            "start_uid": 0,
            "last_sync_at": text(self.now - timedelta(seconds=20)),
            "last_push_at": text(self.now - timedelta(minutes=4)),
            "created_at": text(self.now - timedelta(days=30)),
            "updated_at": text(self.now - timedelta(seconds=5)),
        }
        self._insert("ops_mail_cursor", values | more)

    def mail(self, mailbox: str, status: str, at: datetime, **more: Any) -> None:
        """One mail that landed at `at`."""
        self._insert("ops_mail_message", self._mail(mailbox, status, at) | more)

    def _mail(self, mailbox: str, status: str, at: datetime) -> dict[str, Any]:
        self._uid += 1
        return {
            "mailbox": mailbox,
            "folder": "INBOX",
            "uid_validity": 1,
            "uid": self._uid,
            "subject": f"Order {self._uid}",
            "from_name": "Ann Example",
            "from_addr": "ann@example.org",
            "size_bytes": 4000 + 37 * self._uid,
            "raw_sha256": f"{self._uid:064x}",
            "status": status,
            "attempts": 1,
            "received_at": text(at),
            "landed_at": text(at),
            "updated_at": text(at),
        }

    def a_day(self, mailbox: str) -> None:
        """A working day's curve of arrivals over the last 24 hours, most of them done."""
        mails = [
            self._mail(mailbox, "done" if number % 9 else "landed", self.now - timedelta(hours=23 - hours))
            for hours in range(24)
            for number in range(round(14 * (1 + math.sin((hours - 8) / 3.6)) ** 1.4))
        ]
        self._insert("ops_mail_message", *mails)

    def dead_letters(self, mailbox: str) -> None:
        """One for each hostile subject, and two that no handler was to blame for."""
        reason = "KeyError: 'order_id' while handling mail from ann@example.org"
        for number, subject in enumerate(HOSTILE_SUBJECTS):
            self.mail(
                mailbox,
                "dead",
                self.now - timedelta(minutes=7 * number),
                subject=subject,
                from_addr=HOSTILE_ADDRESS,
                attempts=5,
                last_error=f"{reason} ({subject[:60]})" if number % 2 else reason,
            )
        self.mail(mailbox, "quarantined", self.now, attempts=0, last_error="parsing took longer than 60 s")
        self.mail(mailbox, "oversize", self.now, attempts=0, size_bytes=73_400_320, last_error="73400320 bytes")

    def instance(self, name: str, role: str, heartbeat_age_seconds: float = 3) -> None:
        """One process."""
        self._insert(
            "ops_mail_instance",
            {
                "instance": name,
                "role": role,
                "started_at": text(self.now - timedelta(days=3, hours=5)),
                "heartbeat_at": text(self.now - timedelta(seconds=heartbeat_age_seconds)),
                "detail": json.dumps({}),
            },
        )

    def _insert(self, table: str, *rows: dict[str, Any]) -> None:
        names = ", ".join(rows[0])
        marks = ", ".join(f":{name}" for name in rows[0])
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
