"""Keep one lease alive and the mailbox's row truthful, until the guard is lost."""

from __future__ import annotations

import asyncio

import structlog

from ops_mail.core.health import Pulse
from ops_mail.core.status import MailboxStatus
from ops_mail.errors import GuardLost, StoreUnavailable
from ops_mail.listener.tools import DATABASE_CALL_SECONDS
from ops_mail.store import CursorReport, Guard, Lease, Store

log = structlog.get_logger("ops_mail.listener")

_SHORTEST_PAUSE_SECONDS = 1.0  # a mailbox that changes state many times a second writes its row once a second


async def keep_lease(
    store: Store, guard: Guard, lease: Lease, status: MailboxStatus, lease_seconds: float, pulse: Pulse
) -> None:
    """Check the guard and write the heartbeat every third of a lease, and soon after each change of state.

    Never returns: raises `Fenced` or `GuardLost`. A database that is away for less than a lease is waited for.
    """
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    status.changed.append(changed.set)
    proven_at = loop.time()
    try:
        while True:
            try:
                pulse.expect(DATABASE_CALL_SECONDS, "checking the guard")
                if lease.key in await guard.lost([lease]):
                    raise GuardLost("the database gave the guard away: its connection was cut or another holder came")
                pulse.expect(DATABASE_CALL_SECONDS, "writing the heartbeat")
                await store.heartbeat(lease, _report(status))
                proven_at = loop.time()
            except StoreUnavailable as error:
                if loop.time() - proven_at > lease_seconds:
                    raise GuardLost(f"no heartbeat for {lease_seconds:g} s: {error}") from error
                log.warning("heartbeat_failed", error=str(error))
            changed.clear()
            pulse.expect(max(_SHORTEST_PAUSE_SECONDS, lease_seconds / 3), "waiting for the next heartbeat")
            await asyncio.sleep(_SHORTEST_PAUSE_SECONDS)
            try:
                async with asyncio.timeout(max(0.0, lease_seconds / 3 - _SHORTEST_PAUSE_SECONDS)):
                    await changed.wait()
            except TimeoutError:
                continue
    finally:
        status.changed.remove(changed.set)
        pulse.rest()


def _report(status: MailboxStatus) -> CursorReport:
    return CursorReport(
        state=status.state,
        failures=status.failures,
        last_error=status.last_error,
        next_retry_at=status.next_retry_at,
        last_push_at=status.last_push_at,
        last_sync_at=status.last_sync_at,
    )
