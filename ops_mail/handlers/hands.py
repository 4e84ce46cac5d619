"""The mails this process has in its hands, and the heartbeat that keeps them there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from ops_mail.core.repeats import RepeatLimiter
from ops_mail.errors import StoreError
from ops_mail.store.claims import Claim, lost_key
from ops_mail.store.handling import HandlingStore

log = structlog.get_logger("ops_mail.handlers")

_MARGIN = 0.9
_RETRY_SECONDS = 0.5


@dataclass(slots=True, eq=False)
class Held:
    """One claim. `gone` is set when the lease is lost for certain, `unsure` when it may have run out unseen."""

    claim: Claim
    safe_until_mono: float
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    unsure: asyncio.Event = field(default_factory=asyncio.Event)


class Hands:
    """What is claimed and not yet written down. On the main loop only."""

    def __init__(self, store: HandlingStore, mono: Callable[[], float]) -> None:
        self._store = store
        self._mono = mono
        self._held: dict[str, Held] = {}
        self._repeats = RepeatLimiter()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def suspect(self) -> bool:
        """Whether one of them may be a mail that takes processes down."""
        return any(held.claim.suspect for held in self._held.values())

    def ids(self) -> frozenset[int]:
        """Rows that must not be claimed again meanwhile."""
        return frozenset(held.claim.message_pk for held in self._held.values())

    def take(self, claim: Claim, claimed_mono: float) -> Held:
        """`claimed_mono`: the time before the claim was asked for."""
        held = Held(claim, claimed_mono + _MARGIN * self._store.lease_seconds)
        self._held[lost_key(claim.message_pk, claim.lease_id)] = held
        return held

    def let_go(self, held: Held) -> None:
        """It is written down, given back or somebody else's."""
        self._held.pop(lost_key(held.claim.message_pk, held.claim.lease_id), None)

    async def keep(self) -> None:
        """Renews every third of a lease, for ever."""
        while True:
            await asyncio.sleep(self._store.lease_seconds / 3)
            while self._held and not await self._renew():
                self._doubt()
                await asyncio.sleep(min(_RETRY_SECONDS, self._store.lease_seconds / 10))

    async def _renew(self) -> bool:
        asked_mono = self._mono()
        held = tuple(self._held.values())
        try:
            lost = await self._store.renew([one.claim for one in held])
        except StoreError as error:
            count = self._repeats.admit_error(str(error))
            if count:
                log.warning("leases_not_renewed", mails=len(held), error=str(error), times=count)
            return False
        self._repeats.forget()
        for one in held:
            if lost_key(one.claim.message_pk, one.claim.lease_id) in lost:
                one.gone.set()
            else:
                one.safe_until_mono = asked_mono + _MARGIN * self._store.lease_seconds
        return True

    def _doubt(self) -> None:
        now = self._mono()
        for held in self._held.values():
            if now > held.safe_until_mono:
                held.unsure.set()
