"""What the page for people knows from the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ops_mail.core.mail import MessageStatus
from ops_mail.store.model import CursorState, InstanceState


@dataclass(frozen=True, slots=True)
class Tally:
    """A number of rows that was counted only up to a limit: with `at_least` there are more."""

    count: int
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Hour:
    """How many mails landed in the hour from `start` (UTC, whole hours of the database's clock)."""

    start: datetime
    landed: Tally


@dataclass(frozen=True, slots=True)
class FolderRow:
    """A folder's cursor and when its newest mail landed and reached the server."""

    cursor: CursorState
    last_landed_at: datetime | None
    last_received_at: datetime | None


@dataclass(frozen=True, slots=True)
class MailLine:
    """One mail in a list. `subject` and the sender are a mail's own words: hostile, and cut to a few hundred letters.

    `status` is as it stands in the row: a newer version may know more of them than this one.
    """

    message_pk: int
    mailbox: str
    folder: str
    uid: int
    status: str
    attempts: int
    error: str | None
    size_bytes: int
    received_at: datetime | None
    landed_at: datetime
    updated_at: datetime
    subject: str
    from_name: str
    from_addr: str


@dataclass(frozen=True, slots=True)
class Overview:
    """One look at the database. `at` is its own clock; `set_aside` and `latest` begin with the newest mail."""

    at: datetime
    folders: tuple[FolderRow, ...]
    instances: tuple[InstanceState, ...]
    hours: tuple[Hour, ...]
    statuses: dict[MessageStatus, Tally]
    set_aside: tuple[MailLine, ...]
    latest: tuple[MailLine, ...]
