"""What goes into the store and what comes out of it, besides the mails themselves (`ops_mail.core.mail`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from ops_mail.core.ids import Epoch, FolderKey, Uid, UidValidity
from ops_mail.core.mail import PreparedMail


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to land mails of one folder, until another instance takes a higher epoch.

    `taken_from`: who held it at the epoch before and never gave it up. None: nobody, or it was given up in order.
    """

    key: FolderKey
    cursor_id: int
    epoch: Epoch
    holder: str
    taken_from: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CursorState:
    """One row of `ops_mail_cursor`. `uid_validity` None = the folder was never selected. Times are UTC and aware."""

    key: FolderKey
    cursor_id: int
    uid_validity: UidValidity | None
    last_uid: Uid
    start_uid: Uid
    epoch: Epoch
    holder: str | None
    lease_until: datetime | None
    state: str
    failures: int
    last_error: str | None
    next_retry_at: datetime | None
    last_push_at: datetime | None
    last_sync_at: datetime | None
    created_at: datetime
    updated_at: datetime
    lease_live: bool  # lease_until is in the future by the database's clock

    @property
    def renumbered(self) -> bool:
        """The server numbered the folder anew since it was first read; `start_uid` means nothing any more."""
        return self.start_uid < 0


@dataclass(frozen=True, slots=True)
class CursorReport:
    """What a heartbeat tells others about the mailbox. `last_push_at` and `last_sync_at` None = as they were."""

    state: str
    failures: int = 0
    last_error: str | None = None
    next_retry_at: datetime | None = None
    last_push_at: datetime | None = None
    last_sync_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LandingBatch:
    """Mails of one folder in ascending UID order; `advance_to` ≥ the last one's UID is the cursor's new place.

    `action_due`: an after-action on the server is to follow for each of them. `completes`: those whose rows are there
    without content (the server once refused it) fill them; they count as new then.
    """

    uid_validity: UidValidity
    mails: tuple[PreparedMail, ...]
    advance_to: Uid
    synced_at: datetime
    action_due: bool = False
    completes: bool = False


@dataclass(frozen=True, slots=True)
class LandingResult:
    """What a landing did: new rows, rows of an older numbering that took the new key, rows that were there already.

    `new_uids` are those of the new rows.
    """

    landed: int
    rekeyed: int
    duplicates: int
    new_uids: frozenset[Uid] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class Anchor:
    """What the row at a UID says about its mail: enough to notice that the server means another one by it."""

    received_at: datetime | None
    size_bytes: int
    raw_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class InstanceState:
    """One live or recently live process. `age_seconds`: since its last heartbeat, by the database's clock."""

    instance: str
    role: str
    started_at: datetime
    heartbeat_at: datetime
    age_seconds: float
    detail: object


class SchemaStatus(StrEnum):
    """How the tables stand to this program."""

    CURRENT = "current"
    BEHIND = "behind"  # `ops-mail migrate` is due
    MISSING = "missing"  # no tables yet
    AHEAD = "ahead"  # a newer program has migrated them


@dataclass(frozen=True, slots=True)
class SchemaState:
    """`found` is the revision in the database, `wanted` the newest this program knows."""

    status: SchemaStatus
    found: str | None
    wanted: str


@dataclass(frozen=True, slots=True)
class PrivilegeReport:
    """What the account may do. Each entry is `PRIVILEGE on table`.

    `forbidden`: writes that should be impossible (promise P8). `missing`: what running needs and the account lacks.
    `missing_for_migrate`: what only `migrate` needs. `complete` is False when the grants could not be read.
    """

    forbidden: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    missing_for_migrate: tuple[str, ...] = ()
    complete: bool = True
