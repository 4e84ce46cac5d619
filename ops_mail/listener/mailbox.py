"""The listener of one mailbox: stand by for the guard, lead while it holds, stand by again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from ops_mail.core.health import Pulse
from ops_mail.core.states import Event
from ops_mail.core.status import MailboxStatus
from ops_mail.errors import Fenced, GuardLost, StoreError
from ops_mail.listener.board import Board
from ops_mail.listener.fetching import Suspects
from ops_mail.listener.lease_keeper import keep_lease
from ops_mail.listener.session_loop import SessionLoop
from ops_mail.listener.tools import DATABASE_CALL_SECONDS, ListenerOptions, ListenerTools
from ops_mail.listener.verification import Verifier
from ops_mail.store import Lease
from ops_mail.waiting import end_tasks, sleep_or_stop

log = structlog.get_logger("ops_mail.listener")

_STANDBY_POLL_SECONDS = 1.0
_SCHEMA_POLL_SECONDS = 0.1
_RELEASE_SECONDS = 1.5


class MailboxListener:
    """One mailbox in this process; `run` ends only with a stop, cancellation or a bug."""

    def __init__(
        self, tools: ListenerTools, options: ListenerOptions, status: MailboxStatus, pulse_of: Callable[[str], Pulse]
    ) -> None:
        self._tools = tools
        self._options = options
        self._board = Board(status, tools.metrics, tools.clock, options.label)
        self._suspects = Suspects()
        self._verifier = Verifier(tools, options)
        self._name = f"listener:{options.key}"
        self._pulse = pulse_of(self._name)
        self._session_pulse = pulse_of(f"{self._name}:session")
        self._lease_pulse = pulse_of(f"{self._name}:lease")
        self._session_pulse.rest()
        self._lease_pulse.rest()

    async def run(self) -> None:
        """See the class. The state is STOPPED afterwards when a stop was asked for."""
        structlog.contextvars.bind_contextvars(mailbox=self._options.label)
        self._board.restart()
        while not self._tools.stop.is_set():
            lease = await self._stand_by()
            if lease is not None:
                await self._lead(lease)
        self._board.stopped()
        self._pulse.rest()

    async def _stand_by(self) -> Lease | None:
        """Ask for the guard until it is ours; None when stopping."""
        while not self._tools.stop.is_set():
            self._pulse.expect(3 * DATABASE_CALL_SECONDS, "asking for the guard")
            if not self._tools.schema_ready.is_set():
                await sleep_or_stop(_SCHEMA_POLL_SECONDS, self._tools.stop)
                continue
            delay_seconds = _STANDBY_POLL_SECONDS * (0.75 + self._tools.random() / 2)
            try:
                lease = await self._tools.guard.try_acquire(self._options.key)
                if lease is not None:
                    return lease
                cursor = await self._tools.store.read_cursor(self._options.key)
                self._board.standing_by(cursor.holder if cursor else None)
            except StoreError as error:
                failures = self._board.status.failures + 1
                delay_seconds = self._options.backoff.delay_seconds(failures, self._tools.random())
                self._board.standby_failed(str(error), delay_seconds)
            await sleep_or_stop(delay_seconds, self._tools.stop, lambda: self._pulse.expect(10, "standing by"))
        return None

    async def _lead(self, lease: Lease) -> None:
        """Work under the lease until a stop or until the guard is gone; a bug in the work is passed on."""
        self._pulse.rest()  # while leading, the two tasks below answer for themselves
        structlog.contextvars.bind_contextvars(epoch=lease.epoch)
        self._board.leading(lease)
        session = asyncio.create_task(self._session_loop(lease).run(), name=f"{self._name}:session")
        keeper = asyncio.create_task(self._keep(lease), name=f"{self._name}:lease")
        stopping = asyncio.create_task(self._tools.stop.wait(), name=f"{self._name}:stop")
        try:
            await asyncio.wait({session, keeper, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if self._tools.stop.is_set():
                await self._drain(session, keeper)
        finally:
            # Only these tasks are cancelled, never the process: losing the guard abandons one batch.
            await end_tasks(session, keeper, stopping)
            await self._give_up(lease)
        await self._explain(session, keeper)

    async def _drain(self, session: asyncio.Task[None], keeper: asyncio.Task[None]) -> None:
        """A stop: let the batch in flight end, for a bounded time."""
        self._board.fire(Event.STOP)
        await asyncio.wait({session, keeper}, timeout=self._options.drain_seconds, return_when=asyncio.FIRST_COMPLETED)
        if not session.done():
            log.warning("batch_abandoned", reason="the process is stopping", after_seconds=self._options.drain_seconds)

    async def _give_up(self, lease: Lease) -> None:
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._tools.guard.release(lease)
        except TimeoutError:
            log.warning("guard_release_slow", limit_seconds=_RELEASE_SECONDS)
        structlog.contextvars.unbind_contextvars("epoch")

    async def _explain(self, session: asyncio.Task[None], keeper: asyncio.Task[None]) -> None:
        """Why leading ended: a stop, the guard, or a bug (raised for the supervisor to see)."""
        errors = [task.exception() for task in (session, keeper) if task.done() and not task.cancelled()]
        lost = next((error for error in errors if isinstance(error, Fenced | GuardLost)), None)
        bug = next((error for error in errors if error is not None and error is not lost), None)
        if self._tools.stop.is_set():
            if bug is not None:
                log.error("listener_failed_while_stopping", error=repr(bug))
            return
        if lost is not None:
            self._board.guard_gone(str(lost))
        if bug is not None and not isinstance(bug, Fenced | GuardLost):
            raise bug
        if isinstance(lost, Fenced):
            # Somebody else leads: let that instance work for a lease before asking again.
            await sleep_or_stop(
                self._options.lease_seconds, self._tools.stop, lambda: self._pulse.expect(10, "fenced, waiting")
            )

    def _session_loop(self, lease: Lease) -> SessionLoop:
        return SessionLoop(
            self._tools, self._options, self._board, lease, self._suspects, self._verifier, self._session_pulse
        )

    async def _keep(self, lease: Lease) -> None:
        await keep_lease(
            self._tools.store,
            self._tools.guard,
            lease,
            self._board.status,
            self._options.lease_seconds,
            self._lease_pulse,
        )
