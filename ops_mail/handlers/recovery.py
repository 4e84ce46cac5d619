"""Mails whose process died in the middle of an attempt: found and put back, by whoever is alive."""

from __future__ import annotations

import asyncio

import structlog

from ops_mail.errors import StoreError
from ops_mail.handlers.parts import HandlerParts
from ops_mail.store.handling import HandlingStore

log = structlog.get_logger("ops_mail.handlers")


async def recover_stale_mails(store: HandlingStore, parts: HandlerParts) -> None:
    """At once, then about every third of a lease, until cancelled. Raises nothing but bugs."""
    while True:
        try:
            verdicts = await store.recover_stale()
        except StoreError as error:
            log.debug("recovery_failed", error=str(error))  # claiming, which fails too, tells it loudly
            verdicts = []
        for verdict in verdicts:
            parts.metrics.handler_attempts.labels(outcome=verdict.outcome.value).inc()
        if verdicts:
            log.warning("stale_mails_recovered", mails=len(verdicts))
        await asyncio.sleep(store.lease_seconds / 3 * (0.75 + parts.random() / 2))
