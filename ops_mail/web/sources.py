"""What the endpoints read and how they are set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ops_mail.core.clock import Clock
from ops_mail.core.status import ProcessStatus
from ops_mail.metrics import Metrics
from ops_mail.settings import Secret


@dataclass(frozen=True, slots=True)
class WebSources:
    """Memory that others keep up to date."""

    status: ProcessStatus
    metrics: Metrics
    clock: Clock
    stuck_reasons: Callable[[], list[str]]


@dataclass(frozen=True, slots=True)
class WebOptions:
    """`show_content`: mails' subjects and senders are shown; a `token` is then required (the settings see to it).

    `sync_limit_seconds`: how old the last sync of another process's mailbox may be. `lease_seconds`: an instance
    without a heartbeat for two of these is gone.
    """

    show_content: bool = False
    token: Secret | None = None
    sync_limit_seconds: float = 270.0
    lease_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.show_content and self.token is None:
            raise ValueError("content is shown only to those who hold a token")
