"""What a listener is given: its own options, and the tools that all listeners of a process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ops_mail.core.backoff import BackoffPolicy
from ops_mail.core.batching import BatchLimits
from ops_mail.core.clock import Clock
from ops_mail.core.ids import FolderKey
from ops_mail.core.mail import PreparedMail
from ops_mail.imap import SessionOptions
from ops_mail.settings import AfterLanding
from ops_mail.store import STATEMENT_SECONDS, Guard, Store

if TYPE_CHECKING:  # a command that compares a folder needs only the options
    from ops_mail.metrics import Metrics
    from ops_mail.mime.pool import ParserPool

DATABASE_CALL_SECONDS = STATEMENT_SECONDS + 2
"""By then an ordinary call of the store has answered or failed by itself; a task that still waits is stuck."""


@dataclass(frozen=True, slots=True)
class Landed:
    """One mail that was just committed; `latency_seconds` runs from the server's hint, None without a hint."""

    key: FolderKey
    mail: PreparedMail
    latency_seconds: float | None


@dataclass(frozen=True, slots=True)
class ListenerTools:
    """Shared by all listeners of the process. `stop` is set once and ends everything in order.

    `schema_ready` is set when the tables are known to fit this version. `random` yields 0 to 1.
    """

    store: Store
    guard: Guard
    parsers: ParserPool
    metrics: Metrics
    clock: Clock
    spool_root: Path
    random: Callable[[], float]
    stop: asyncio.Event
    schema_ready: asyncio.Event
    on_landed: Callable[[Landed], None]


@dataclass(frozen=True, slots=True)
class ListenerOptions:
    """One mailbox. `label` stands for it in metrics and log: its name, and the folder where the name is not unique.

    `start_now`: only mail that arrives after the first start counts; `start_date`: only mail whose INTERNALDATE is
    not before it. `verify_interval_seconds` 0 = never. `drain_seconds`: how long a batch in flight may still take
    after a stop.
    """

    key: FolderKey
    label: str
    session: SessionOptions
    idle_seconds: float
    poll_seconds: float
    lease_seconds: float
    backoff: BackoffPolicy
    limits: BatchLimits
    drain_seconds: float
    verify_interval_seconds: float
    after_landing: AfterLanding = field(default_factory=AfterLanding)
    start_now: bool = False
    start_date: datetime | None = None
