"""What is known right now about each mailbox of this process: written by its listener, read by everybody else.

Times ending in `_at` are wall-clock UTC for people; those ending in `_mono` are monotonic seconds for decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from ops_mail.core.ids import Epoch, FolderKey, Uid
from ops_mail.core.mailbox import VARIABLES, MailboxSource
from ops_mail.core.states import State
from ops_mail.errors import Failure


@dataclass(slots=True)
class MailboxStatus:
    """One mailbox. Mutable on purpose: a board, not a message. `changed` is called after each change of state."""

    key: FolderKey
    idle_window_seconds: float
    command_timeout_seconds: float
    state: State = State.STANDBY
    state_since: datetime | None = None
    holder: str | None = None
    epoch: Epoch | None = None
    last_uid: Uid = field(default=Uid(0))
    backlog: int = 0
    failures: int = 0
    reconnects: int = 0
    last_error: str | None = None
    last_failure: Failure | None = None  # the kind of `last_error`, when it ended a session
    next_retry_at: datetime | None = None
    next_wait_over_at: datetime | None = None
    last_push_at: datetime | None = None
    last_sync_at: datetime | None = None
    last_landed_at: datetime | None = None
    last_sync_mono: float | None = None
    last_progress_mono: float | None = None
    standby_seen_mono: float | None = None
    idle_trusted: bool = True
    source: MailboxSource = VARIABLES  # where its settings stand
    changed: list[Callable[[], None]] = field(default_factory=list)

    def notify(self) -> None:
        """Tell everyone who asked that this mailbox changed."""
        for tell in self.changed:
            tell()


@dataclass(slots=True)
class ProcessStatus:
    """The process as a whole."""

    instance: str
    role: str
    enabled: bool
    started_at: datetime
    mailboxes: list[MailboxStatus]
    database_ok: bool = False
    database_error: str | None = "not connected yet"
    modules: dict[str, str] = field(default_factory=dict)
    instance_id: str = ""  # as in `ops_mail_instance` and in the holder of a guard
