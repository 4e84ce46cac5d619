"""A mailbox's row as `status` finds it when all is well."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ops_mail.core.ids import Epoch, FolderKey, Uid, UidValidity
from ops_mail.store import CursorState

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
KEY = FolderKey("billing", "INBOX")
GOOD = CursorState(
    key=KEY,
    cursor_id=1,
    uid_validity=UidValidity(7),
    last_uid=Uid(42),
    start_uid=Uid(0),
    epoch=Epoch(3),
    holder="node-1:10:abc",
    lease_until=NOW + timedelta(seconds=20),
    state="idling",
    failures=0,
    last_error=None,
    next_retry_at=None,
    last_push_at=None,
    last_sync_at=NOW - timedelta(seconds=100),
    created_at=NOW,
    updated_at=NOW,
    lease_live=True,
)
