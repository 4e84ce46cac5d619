"""Mails that arrive in the embedded mailbox, and how long each took to land."""

from __future__ import annotations

import asyncio
import itertools
import time
from datetime import UTC, datetime

from ops_mail.demo.building import build_mail
from ops_mail.demo.samples import SAMPLES
from ops_mail.demo.server import EmbeddedServer

_LOOK_SECONDS = 0.05


class Feeder:
    """Delivers one sample after the other and remembers when each arrived."""

    def __init__(self, server: EmbeddedServer, every_seconds: float, count: int | None) -> None:
        self._server = server
        self._every_seconds = every_seconds
        self._count = count
        self._arrived: dict[str, float] = {}  # Message-ID: monotonic seconds

    async def run(self) -> None:
        """Deliver `count` mails, or for ever, from when the listener has opened the mailbox."""
        while not await self._server.has_reader():  # noqa: ASYNC110 - pymap has no event for it
            await asyncio.sleep(_LOOK_SECONDS)
        samples = itertools.cycle(SAMPLES)
        numbers = itertools.count(1) if self._count is None else range(1, self._count + 1)
        for number, sample in zip(numbers, samples, strict=False):
            now = datetime.now(UTC)
            message_id, content = build_mail(sample, number, now)
            self._arrived[message_id] = time.monotonic()
            await self._server.deliver(content, now)
            await asyncio.sleep(self._every_seconds)

    def seconds_since_arrival(self, message_id: str | None) -> float:
        """Tell the time from the arrival of this mail until now; asked once for each."""
        return time.monotonic() - self._arrived.pop((message_id or "").strip("<>"))
