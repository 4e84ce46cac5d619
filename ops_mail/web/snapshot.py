"""What the page and `/api/status` show at one moment, free of language and layout.

Two snapshots are equal when nothing changed that a reader should be told; what grows by itself (ages) does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from ops_mail.core.mail import MessageStatus
from ops_mail.core.mailbox import MailboxSource
from ops_mail.store.overview import SET_ASIDE
from ops_mail.store.overview_model import Hour, Tally
from ops_mail.web.trouble import Trouble


class Level(StrEnum):
    """How a mailbox is, for the eye; `warn`: it works, but something failed; `bad`: it does not do its work."""

    OK = "ok"
    BUSY = "busy"
    STANDBY = "standby"
    WARN = "warn"
    BAD = "bad"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class LeaderView:
    """What a standby knows, from the database, of the instance that leads."""

    state: str
    failures: int
    last_error: str | None
    next_retry_at: datetime | None


@dataclass(frozen=True, slots=True)
class MailboxView:
    """One folder of one mailbox. `here`: this process runs it; else all is from the database, and None = not known.

    `source`: where its settings stand.
    """

    name: str
    folder: str
    here: bool
    level: Level
    state: str
    ready: bool
    reason: str = field(compare=False)
    last_sync_age_seconds: float | None = field(compare=False)
    holder: str | None
    held_here: bool
    epoch: int | None
    last_uid: int
    backlog: int | None
    reconnects: int | None
    failures: int
    last_error: str | None
    trouble: Trouble | None
    idle_trusted: bool
    state_since: datetime | None
    next_wait_over_at: datetime | None
    next_retry_at: datetime | None
    last_push_at: datetime | None
    last_sync_at: datetime | None
    last_landed_at: datetime | None
    leader: LeaderView | None = None
    source: MailboxSource | None = None


@dataclass(frozen=True, slots=True)
class MailView:
    """A mail in a list. `subject` and `sender` are None while content is hidden; all text is fit to be shown."""

    mailbox: str
    folder: str
    uid: int
    status: str
    attempts: int
    reason: str
    size_bytes: int
    received_at: datetime | None
    landed_at: datetime
    updated_at: datetime
    subject: str | None
    sender: str | None


@dataclass(frozen=True, slots=True)
class InstanceView:
    """One process that shares the database. `duty`: leader, standby, consumer or gone."""

    instance: str
    here: bool
    role: str
    duty: str
    mailboxes: tuple[str, ...]
    started_at: datetime
    heartbeat_at: datetime


@dataclass(frozen=True, slots=True)
class OverviewView:
    """What comes from the database. `latest` is None while content is hidden."""

    at: datetime = field(compare=False)
    hours: tuple[Hour, ...]
    messages: Mapping[MessageStatus, Tally]
    set_aside: tuple[MailView, ...]
    latest: tuple[MailView, ...] | None
    instances: tuple[InstanceView, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything. `overview` is None until the database was read, and while it cannot be; then see `database_error`."""

    now: datetime = field(compare=False)
    status: str
    reasons: tuple[str, ...]
    instance: str
    instance_id: str
    version: str
    role: str
    ready: bool
    database: str
    database_error: str | None
    started_at: datetime
    modules: Mapping[str, str]
    content_shown: bool
    mailboxes: tuple[MailboxView, ...]
    overview: OverviewView | None

    @property
    def set_aside(self) -> int:
        """How many mails no further attempt is made for, as far as is known."""
        counts = {} if self.overview is None else self.overview.messages
        return sum(counts[status].count for status in SET_ASIDE if status in counts)

    @property
    def here(self) -> tuple[MailboxView, ...]:
        """The mailboxes of this process."""
        return tuple(mailbox for mailbox in self.mailboxes if mailbox.here)

    @property
    def elsewhere(self) -> tuple[MailboxView, ...]:
        """Mailboxes of which only the database tells."""
        return tuple(mailbox for mailbox in self.mailboxes if not mailbox.here)
