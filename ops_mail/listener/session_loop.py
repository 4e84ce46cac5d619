"""Session after session under one lease: connect, select, sync, wait, sync, … and backoff after any failure."""

from __future__ import annotations

import structlog

from ops_mail.core.health import Pulse
from ops_mail.core.numbering import Numbering
from ops_mail.core.providers import provider_for
from ops_mail.core.states import Event
from ops_mail.core.trust import IdleTrust
from ops_mail.errors import Failure, Fenced, GuardLost, ImapError, OpsMailError, StoreError
from ops_mail.imap import IdleOutcome, ImapSession, open_session
from ops_mail.listener.board import Board
from ops_mail.listener.fetching import Suspects
from ops_mail.listener.reconcile import reconcile
from ops_mail.listener.spool import Spool
from ops_mail.listener.sync import Syncer, SyncResult
from ops_mail.listener.tools import ListenerOptions, ListenerTools
from ops_mail.listener.verification import Verifier
from ops_mail.store import Lease
from ops_mail.waiting import Stopping, sleep_or_stop, unless_stopped

log = structlog.get_logger("ops_mail.listener")

_LOGOUT_SECONDS = 1.0
_MARGIN_SECONDS = 5.0


class SessionLoop:
    """Runs until the process stops; ends earlier only by `Fenced`, `GuardLost`, cancellation or a bug."""

    def __init__(
        self,
        tools: ListenerTools,
        options: ListenerOptions,
        board: Board,
        lease: Lease,
        suspects: Suspects,
        verifier: Verifier,
        pulse: Pulse,
    ) -> None:
        self._tools = tools
        self._options = options
        self._board = board
        self._lease = lease
        self._suspects = suspects
        self._verifier = verifier
        self._pulse = pulse
        self._trust = IdleTrust()
        self._spool = Spool(tools.spool_root)

    async def run(self) -> None:
        """See the class."""
        try:
            while not self._tools.stop.is_set():
                delay_seconds = await self._one_session()
                if delay_seconds is None:
                    return
                if await sleep_or_stop(delay_seconds, self._tools.stop, lambda: self._pulse.expect(10, "backing off")):
                    return
                self._board.fire(Event.RETRY_DUE)
        finally:
            self._pulse.rest()
            await self._spool.close()

    async def _one_session(self) -> float | None:
        """One session from connect to its end; the delay before the next, None when stopping."""
        try:
            await self._spool.open()
            session = await self._connect()
        except Stopping:
            return None
        except (OpsMailError, OSError) as error:
            return self._failed(error)
        try:
            await self._serve(session)
        except (Fenced, GuardLost):
            raise
        except (OpsMailError, OSError) as error:
            return self._failed(error)
        except Stopping:
            return None
        else:
            return None
        finally:
            # After an error the session is dead already and this only closes the socket; LOGOUT never raises.
            await session.logout(_LOGOUT_SECONDS)

    def _failed(self, error: OpsMailError | OSError) -> float | None:
        if self._tools.stop.is_set():  # closing went wrong: told, and neither a failure of the mailbox nor the cause
            log.warning("close_failed", error=str(error))
            return None
        # A mail that cannot be fetched costs its own failures, not those of all such mails before it (promise P4).
        failures = self._suspects.failures_in_a_row(error) or self._board.status.failures + 1
        delay_seconds = max(
            self._options.backoff.delay_seconds(failures, self._tools.random()),
            provider_for(self._options.session.host, frozenset()).min_login_gap_seconds,
        )
        self._board.failed(_failure_of(error), str(error), delay_seconds)
        return delay_seconds

    async def _connect(self) -> ImapSession:
        limit = self._options.session.connect_timeout_seconds + 5 * self._options.session.command_timeout_seconds
        self._pulse.expect(limit, "connecting")
        session = await unless_stopped(open_session(self._options.session), self._tools.stop)
        session.on_life(self._beat_command)
        self._tools.metrics.certificate(self._options.label, session.certificate_expires_at)
        self._board.fire(Event.LOGGED_IN)
        return session

    async def _serve(self, session: ImapSession) -> None:
        syncer = await self._select(session)
        waited: IdleOutcome | None = None
        while True:
            result = await syncer.run()
            if not result.drained:
                return
            self._board.synced()
            self._judge_idle(waited, result)
            if self._verifier.due:
                await self._verifier.run(session, syncer)
            waited = await self._wait(session)
            if waited is IdleOutcome.WOKEN:
                return

    async def _select(self, session: ImapSession) -> Syncer:
        self._pulse.expect(10 * self._options.session.command_timeout_seconds, "selecting")
        selected = await unless_stopped(session.select(self._options.key.folder), self._tools.stop)
        position = await reconcile(self._tools.store, session, self._lease, selected, self._options)
        if position.numbering is not Numbering.SAME:
            self._suspects.forget()
        self._board.fire(Event.RECONCILED)
        return Syncer(
            self._tools,
            self._options,
            self._board,
            session,
            self._lease,
            self._spool,
            self._suspects,
            self._pulse,
            position,
        )

    def _judge_idle(self, waited: IdleOutcome | None, result: SyncResult) -> None:
        """Did the wait before this sync keep a push from us?"""
        if waited is None:
            return
        pushed = waited is IdleOutcome.PUSH or result.hinted
        self._trust = self._trust.after_wait(pushed=pushed, found=result.found)
        if not pushed and result.found:
            self._board.missed_push(result.found)
        self._board.status.idle_trusted = self._trust.trusted

    async def _wait(self, session: ImapSession) -> IdleOutcome | None:
        """IDLE or wait for the next poll. None after a poll: the server had no way to announce anything."""
        trusted = session.can_idle and self._trust.trusted
        self._board.fire(Event.DRAINED_TO_IDLE if trusted else Event.DRAINED_TO_POLL)
        if not session.can_idle:
            return await self._poll(session)
        seconds = self._trust.window_seconds(self._options.idle_seconds, self._options.poll_seconds)
        self._board.waiting(seconds)
        self._beat_idle()
        outcome = await session.idle(seconds, self._tools.stop, self._beat_idle)
        self._board.fire(Event.WAIT_OVER)
        self._board.waited(pushed=outcome is IdleOutcome.PUSH)
        self._board.fire(Event.ENDED)
        return outcome

    async def _poll(self, session: ImapSession) -> IdleOutcome | None:
        seconds = self._options.poll_seconds
        if session.provider.keepalive_seconds is not None:
            seconds = min(seconds, session.provider.keepalive_seconds)
        self._board.waiting(seconds)
        stopping = await sleep_or_stop(seconds, self._tools.stop, lambda: self._pulse.expect(10, "polling"))
        self._board.fire(Event.WAIT_OVER)
        if stopping:
            return IdleOutcome.WOKEN
        self._pulse.expect(2 * self._options.session.command_timeout_seconds, "polling")
        await session.poll()
        self._board.fire(Event.ENDED)
        return None

    def _beat_command(self) -> None:
        self._pulse.renew(self._options.session.command_timeout_seconds + _MARGIN_SECONDS)

    def _beat_idle(self) -> None:
        self._pulse.expect(10, "idling")  # it beats every five seconds, also while it waits for `+` and for DONE's OK


def _failure_of(error: OpsMailError | OSError) -> Failure:
    if isinstance(error, ImapError):
        return error.failure
    return Failure.DATABASE if isinstance(error, StoreError) else Failure.INTERNAL
