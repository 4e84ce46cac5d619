"""The live feed at `/events`: server-sent events that carry the parts of the page that changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog
from aiohttp import web

from ops_mail.web.language import Language
from ops_mail.web.page import Frame
from ops_mail.web.when import iso

log = structlog.get_logger("ops_mail.web")

READER_LIMIT = 32
TICK_SECONDS = 1.0
PAUSE_SECONDS = 0.1
"""Between two updates: changes that come at once go out together."""
BEAT_SECONDS = 5.0
"""A page that hears nothing for three of these says that it may be old."""
WRITE_SECONDS = 5.0
LONGEST_SECONDS = 3600.0
"""Then the reader connects again, and is asked for its token again."""
RETRY_MILLISECONDS = 2000


class LiveFeed:
    """Serves readers, at most `READER_LIMIT` at a time, until `close`."""

    def __init__(self, frame: Callable[[Language], Awaitable[Frame]], now: Callable[[], datetime]) -> None:
        self._frame = frame
        self._now = now
        self._bells: set[asyncio.Event] = set()
        self._closed = False

    @property
    def readers(self) -> int:
        """How many listen now."""
        return len(self._bells)

    def poke(self) -> None:
        """Something changed: look now instead of at the next tick."""
        for bell in self._bells:
            bell.set()

    def close(self) -> None:
        """Every reader's stream ends at once."""
        self._closed = True
        self.poke()

    async def serve(self, request: web.Request, language: Language) -> web.StreamResponse:
        """One reader's stream, to its end."""
        if self._closed or self.readers >= READER_LIMIT:
            return web.Response(status=503, text="too many readers\n", headers={"Retry-After": "10"})
        response = web.StreamResponse(headers={"X-Accel-Buffering": "no"})  # nginx would hold events back
        response.content_type = "text/event-stream"
        response.charset = "utf-8"
        bell = asyncio.Event()
        self._bells.add(bell)  # before the first await, so that the limit holds
        try:
            await response.prepare(request)
            await self._stream(response, bell, language)
        except (ConnectionError, TimeoutError) as error:
            log.debug("reader_gone", error=type(error).__name__)
            if request.transport is not None:
                request.transport.abort()  # an orderly end would wait for a reader that does not read
        finally:
            self._bells.discard(bell)
        return response

    async def _stream(self, response: web.StreamResponse, bell: asyncio.Event, language: Language) -> None:
        clock = asyncio.get_running_loop().time
        end = clock() + LONGEST_SECONDS
        beat_due = clock()
        sent: dict[str, str] = {}
        await _write(response, f"retry: {RETRY_MILLISECONDS}\n\n")
        while not self._closed and clock() < end:
            bell.clear()
            changed = _changes(sent, await self._frame(language))
            if changed:
                await _write(response, _event("update", json.dumps({"now": iso(self._now()), "changed": changed})))
                sent |= changed
                await asyncio.sleep(PAUSE_SECONDS)
            elif clock() >= beat_due:
                await _write(response, _event("beat", iso(self._now())))
            else:
                await _heard(bell, TICK_SECONDS)
                continue
            beat_due = clock() + BEAT_SECONDS


def _changes(sent: dict[str, str], frame: Frame) -> dict[str, str]:
    """What of the frame is not at the reader's yet; keys are `title`, `icon` and `#section`."""
    parts = {"title": frame.title, "icon": frame.icon} | {f"#{name}": html for name, html in frame.sections.items()}
    return {key: part for key, part in parts.items() if sent.get(key) != part}


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"


async def _write(response: web.StreamResponse, text: str) -> None:
    # A reader that does not read fills its buffers; it is let go instead of waited for.
    async with asyncio.timeout(WRITE_SECONDS):
        await response.write(text.encode())


async def _heard(bell: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return
