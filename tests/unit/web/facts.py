"""Facts to build snapshots from, at one fixed moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ops_mail.core.clock import Clock
from ops_mail.core.ids import Epoch, FolderKey, Uid, UidValidity
from ops_mail.core.mail import MessageStatus
from ops_mail.core.status import MailboxStatus, ProcessStatus
from ops_mail.store import CursorState, InstanceState
from ops_mail.store.overview_model import FolderRow, Hour, MailLine, Overview, Tally
from ops_mail.web.build import Facts
from ops_mail.web.look import Look
from tests.browser.stage import HERE

NOW = datetime(2026, 11, 29, 17, 25, 21, tzinfo=UTC)
BOOT = 500_000.0
CLOCK = Clock(lambda: NOW, lambda: BOOT, lambda: BOOT)
LIMIT_SECONDS = 270.0


def process(*mailboxes: MailboxStatus, **more: Any) -> ProcessStatus:
    """A process that has run for a day."""
    values: dict[str, Any] = {
        "instance": "mail-1",
        "role": "all",
        "enabled": True,
        "started_at": NOW - timedelta(days=1),
        "mailboxes": list(mailboxes),
        "database_ok": True,
        "database_error": None,
        "modules": {"listener": "on"},
        "instance_id": HERE,
    }
    return ProcessStatus(**(values | more))


def facts(status: ProcessStatus, overview: Overview | None = None, **more: Any) -> Facts:
    """What a snapshot is built from."""
    values: dict[str, Any] = {
        "status": status,
        "reasons": [],
        "look": Look(overview=overview),
        "totals": {},
        "now": NOW,
        "now_boot": BOOT,
        "content_shown": False,
        "sync_limit_seconds": LIMIT_SECONDS,
        "lease_seconds": 30.0,
    }
    return Facts(**(values | more))


def cursor(name: str, **more: Any) -> CursorState:
    """A row of a mailbox that another process works on."""
    values: dict[str, Any] = {
        "key": FolderKey(name, "INBOX"),
        "cursor_id": 1,
        "uid_validity": UidValidity(1),
        "last_uid": Uid(77),
        "start_uid": Uid(0),
        "epoch": Epoch(9),
        "holder": "mail-2:1:b",
        "lease_until": NOW + timedelta(seconds=20),
        "state": "idling",
        "failures": 0,
        "last_error": None,
        "next_retry_at": None,
        "last_push_at": NOW - timedelta(minutes=9),
        "last_sync_at": NOW - timedelta(seconds=30),
        "created_at": NOW - timedelta(days=9),
        "updated_at": NOW - timedelta(seconds=4),
        "lease_live": True,
    }
    return CursorState(**(values | more))


def row(name: str, **more: Any) -> FolderRow:
    """The same with its newest mail."""
    return FolderRow(cursor(name, **more), NOW - timedelta(minutes=2), NOW - timedelta(minutes=3))


def line(**more: Any) -> MailLine:
    """A dead mail."""
    values: dict[str, Any] = {
        "message_pk": 5,
        "mailbox": "orders",
        "folder": "INBOX",
        "uid": 12,
        "status": "dead",
        "attempts": 5,
        "error": "KeyError: 'order_id'",
        "size_bytes": 4300,
        "received_at": NOW - timedelta(hours=2),
        "landed_at": NOW - timedelta(hours=2),
        "updated_at": NOW - timedelta(hours=1),
        "subject": "Quarterly figures",
        "from_name": "Ann Example",
        "from_addr": "ann@example.org",
    }
    return MailLine(**(values | more))


def instance(name: str, role: str = "all", age_seconds: float = 3.0) -> InstanceState:
    """A process in the table."""
    started, heartbeat = NOW - timedelta(days=1), NOW - timedelta(seconds=age_seconds)
    return InstanceState(name, role, started, heartbeat, age_seconds, {})


def overview(*rows: FolderRow, **more: Any) -> Overview:
    """One look at the database."""
    start = NOW.replace(minute=0, second=0)
    values: dict[str, Any] = {
        "at": NOW,
        "folders": rows,
        "instances": (),
        "hours": tuple(Hour(start - timedelta(hours=back), Tally(back % 7)) for back in reversed(range(24))),
        "statuses": {status: Tally(0) for status in MessageStatus},
        "set_aside": (),
        "latest": (),
    }
    return Overview(**(values | more))
