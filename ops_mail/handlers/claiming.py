"""Claiming mails: how many, when to ask the database, and how long to leave it alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from ops_mail.core.backoff import BackoffPolicy
from ops_mail.core.claim_size import claim_size
from ops_mail.core.repeats import RepeatLimiter
from ops_mail.errors import StoreError
from ops_mail.handlers.hands import Hands
from ops_mail.handlers.parts import HandlerParts
from ops_mail.handlers.slots import Slots
from ops_mail.handlers.writing import OutcomeWriter
from ops_mail.store.claims import Claim, ClaimWish
from ops_mail.store.handling import HandlingStore
from ops_mail.store.stored_mail import StoredMail

log = structlog.get_logger("ops_mail.handlers")

_POLL_SECONDS = 1.0
_CALL_SECONDS = 60.0
_PRELOAD_BYTES = 64 * 1024
_UNWRITTEN_LIMIT = 200
_DATABASE_AWAY = BackoffPolicy(initial_seconds=0.5, max_seconds=10.0)


class News:
    """Whether it is worth asking the database for mails now. On the main loop only."""

    def __init__(self) -> None:
        self._now = asyncio.Event()
        self.more_left = False
        """The last claim got all it asked for, so there is probably more: no need to ask first."""

    def look(self) -> None:
        """At once."""
        self._now.set()

    def look_again(self) -> None:
        """At once, if there was more than was taken."""
        if self.more_left:
            self._now.set()

    def seen(self) -> None:
        """What comes from now on is news again."""
        self._now.clear()

    async def wait(self, seconds: float) -> None:
        """Until there is news, or so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._now.wait()
        except TimeoutError:
            pass


@dataclass(frozen=True, slots=True)
class ClaimTools:
    """What claiming works with. `in_order`: ORDER=uid."""

    handler: str
    in_order: bool
    store: HandlingStore
    hands: Hands
    writer: OutcomeWriter
    slots: Slots
    news: News


class Claiming:
    """`run` fills the slots until the stop; it never raises but for bugs."""

    def __init__(self, tools: ClaimTools, parts: HandlerParts) -> None:
        self._tools = tools
        self._parts = parts
        self._paused_until_mono = 0.0
        self._turn = 0
        self._failures = 0
        self._repeats = RepeatLimiter()

    async def run(self) -> None:
        """See the class."""
        news, pulse = self._tools.news, self._parts.pulse
        news.look()
        while not self._parts.stop.is_set():
            self._tools.slots.show()
            if self._tools.slots.count <= 0:
                # No new promise of life: only a new process can help.
                pulse.doing = f"{self._tools.slots.hung} handlers hang and cannot be ended"
                await asyncio.sleep(_POLL_SECONDS)
                continue
            pulse.expect(_CALL_SECONDS, "claiming mails")
            delay_seconds = await self._fill()
            pulse.expect(delay_seconds, "waiting for mails")
            await news.wait(delay_seconds)

    def freed(self, pause_seconds: float) -> None:
        """An attempt has ended; `pause_seconds` > 0: its remote side asked all handlers to wait so long."""
        if pause_seconds:
            self._pause(pause_seconds)
        self._tools.news.look_again()

    def written(self, suspect: bool) -> None:
        """Ends were written down."""
        if self._tools.in_order or suspect:  # then the next one may be taken only now
            self._tools.news.more_left = True
            self._tools.news.look()

    def _pause(self, seconds: float) -> None:
        until_mono = self._parts.clock.mono() + seconds
        if until_mono > self._paused_until_mono:
            self._paused_until_mono = until_mono
            log.warning("handling_paused", seconds=round(seconds, 1), reason="a handler's remote side asked for it")

    async def _fill(self) -> float:
        """Claims what there is room for; how long to wait for news then."""
        news = self._tools.news
        poll_seconds = _POLL_SECONDS * (0.75 + self._parts.random() / 2)
        news.seen()
        paused_seconds = self._paused_until_mono - self._parts.clock.mono()
        if paused_seconds > 0:
            return min(paused_seconds, poll_seconds)
        wanted = self._wanted()
        if wanted == 0:
            return poll_seconds
        try:
            claimed = await self._claim(wanted)
        except StoreError as error:
            return self._failed(error)
        if self._failures:
            log.info("claiming_works_again", failures=self._failures)
        self._failures = 0
        self._repeats.forget()
        news.more_left = claimed >= wanted
        news.look_again()
        return poll_seconds

    def _wanted(self) -> int:
        slots = self._tools.slots
        if self._tools.writer.waiting > _UNWRITTEN_LIMIT:
            return 0
        if self._tools.in_order:
            return max(0, slots.free - slots.waiting)  # the one behind a mail may start only when its end is written
        return claim_size(slots.free, slots.count, slots.waiting, slots.average.value)

    async def _claim(self, wanted: int) -> int:
        tools = self._tools
        if not tools.news.more_left and not await tools.store.anything_due():
            return 0
        self._turn += 1
        wish = ClaimWish(
            lease_id="",
            limit=wanted,
            handler=tools.handler,
            instance=self._parts.instance,
            suspect=not tools.hands.suspect,
            turn=self._turn,
            exclude=tools.hands.ids() | tools.slots.left_running(),
        )
        asked_mono = self._parts.clock.mono()
        claims = await tools.store.claim(wish)
        held = [tools.hands.take(claim, asked_mono) for claim in claims]
        tools.slots.add(held, await self._preload(claims))
        return len(claims)

    async def _preload(self, claims: list[Claim]) -> dict[int, StoredMail]:
        """Small mails are read together; a large one when its turn comes, so that few are in memory at a time."""
        small = [claim.message_pk for claim in claims if claim.size_bytes <= _PRELOAD_BYTES]
        if not small:
            return {}
        try:
            return await self._tools.store.load(small)
        except StoreError:
            return {}  # each attempt tries by itself and tells its own story

    def _failed(self, error: StoreError) -> float:
        self._failures += 1
        self._tools.news.more_left = True  # do not ask first when it is back
        count = self._repeats.admit_error(str(error))
        if count:
            log.warning("claiming_failed", error=str(error), times=count)
        return _DATABASE_AWAY.delay_seconds(self._failures, self._parts.random())
