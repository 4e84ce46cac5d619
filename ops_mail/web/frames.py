"""One picture for all readers: built at most a few times a second, rendered only when something changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date

from ops_mail.web.language import Language
from ops_mail.web.page import Frame, Page, Reader
from ops_mail.web.snapshot import Snapshot

SHORTEST_SECONDS = 0.2


class Frames:
    """`frame` costs nothing while nothing changes, however many ask. Rendering runs beside the event loop."""

    def __init__(self, page: Page, build: Callable[[], Snapshot], mono: Callable[[], float]) -> None:
        self._page = page
        self._build = build
        self._mono = mono
        self._snapshot: Snapshot | None = None
        self._built_mono = float("-inf")
        self._frames: dict[Language, tuple[Snapshot, date, Frame]] = {}
        self._rendering = asyncio.Lock()

    def snapshot(self) -> Snapshot:
        """The present state, at most `SHORTEST_SECONDS` old."""
        if self._snapshot is None or self._mono() - self._built_mono >= SHORTEST_SECONDS:
            self._snapshot, self._built_mono = self._build(), self._mono()
        return self._snapshot

    def outdated(self) -> None:
        """Something is known to have changed: build anew when asked next."""
        self._built_mono = float("-inf")

    async def whole(self, reader: Reader) -> str:
        """The present state as a page."""
        async with self._rendering:
            return await asyncio.to_thread(self._page.whole, self.snapshot(), reader)

    async def frame(self, language: Language) -> Frame:
        """The present state as the parts of the page."""
        async with self._rendering:
            snapshot = self.snapshot()
            known = self._frames.get(language)
            # Times of another day are written with their date, so a new day is a change too.
            if known is not None and known[:2] == (snapshot, snapshot.now.date()):
                return known[2]
            frame = await asyncio.to_thread(self._page.frame, snapshot, language)
            self._frames[language] = (snapshot, snapshot.now.date(), frame)
            return frame
