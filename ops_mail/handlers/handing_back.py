"""The end of the handlers of a process: what it holds goes back, and what is decided is written down."""

from __future__ import annotations

import asyncio

import structlog

from ops_mail.errors import StoreError
from ops_mail.handlers.hands import Hands
from ops_mail.handlers.slots import Slots
from ops_mail.handlers.writing import OutcomeWriter
from ops_mail.store.handling import HandlingStore

log = structlog.get_logger("ops_mail.handlers")

DRAIN_SHARE, FLUSH_SHARE = 0.35, 0.1
"""Shares of the grace: for attempts to end by themselves, and for each of up to three steps that follow."""


async def hand_back(slots: Slots, store: HandlingStore, hands: Hands, writer: OutcomeWriter, grace: float) -> None:
    """What was not started goes back as it was; what runs gets a share of the `grace` (seconds), then goes back too."""
    giving_back = asyncio.create_task(_give_back(slots, store, hands))
    if slots.running:
        await asyncio.wait(slots.running, timeout=grace * DRAIN_SHARE)
    abandoned = slots.abandon()
    if abandoned:
        log.warning("attempts_abandoned", mails=abandoned, after_seconds=round(grace * DRAIN_SHARE, 1))
        await asyncio.wait(slots.running, timeout=grace * FLUSH_SHARE)
    try:
        async with asyncio.timeout(grace * FLUSH_SHARE):
            await giving_back
            await writer.idle()
    except TimeoutError:
        giving_back.cancel()
        log.warning("outcomes_lost", outcomes=writer.waiting, reason="the database did not answer in time")


async def _give_back(slots: Slots, store: HandlingStore, hands: Hands) -> None:
    unstarted = slots.take_back_unstarted()
    if not unstarted:
        return
    try:
        await store.give_back([held.claim for held in unstarted])
    except StoreError as error:
        log.warning("mails_not_given_back", mails=len(unstarted), error=str(error))
    for held in unstarted:
        hands.let_go(held)
