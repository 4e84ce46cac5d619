"""What the handlers of a process are given by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ops_mail.core.clock import Clock
from ops_mail.core.health import Pulse
from ops_mail.metrics import Metrics
from ops_mail.store import Store


@dataclass(frozen=True, slots=True)
class HandlerParts:
    """`random` yields 0 to 1."""

    store: Store
    metrics: Metrics
    clock: Clock
    random: Callable[[], float]
    stop: asyncio.Event
    schema_ready: asyncio.Event
    instance: str
    pulse: Pulse
    grace_seconds: float
