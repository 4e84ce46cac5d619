"""The state machine of one mailbox together with all that shows it: status, metrics, log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog

from ops_mail.core.clock import Clock
from ops_mail.core.ids import Uid
from ops_mail.core.mail import PreparedMail
from ops_mail.core.repeats import RepeatLimiter
from ops_mail.core.states import Event, State, transition
from ops_mail.core.status import MailboxStatus
from ops_mail.errors import Failure
from ops_mail.metrics import Metrics
from ops_mail.store import Lease

log = structlog.get_logger("ops_mail.listener")


class Board:
    """Every change of a mailbox goes through here, so that no view of it can lag behind another (promise P10)."""

    def __init__(self, status: MailboxStatus, metrics: Metrics, clock: Clock, label: str) -> None:
        self.status = status
        self._metrics = metrics
        self._clock = clock
        self._mailbox = label
        self._repeats = RepeatLimiter()
        metrics.prepare_mailbox(self._mailbox)

    def fire(self, event: Event) -> State:
        """Move the state machine. Raises `IllegalTransition` for an event that the table does not know here."""
        before, after = self.status.state, transition(self.status.state, event)
        self.status.state = after
        self.status.state_since = self._clock.now()
        if after is not State.BACKOFF:
            self.status.next_retry_at = None
        self._metrics.show_state(self._mailbox, after)
        log.debug("state", before=before, on=event, state=after)
        self.status.notify()
        return after

    def restart(self) -> None:
        """The listener starts, perhaps after a bug ended it in any state."""
        if self.status.state is not State.STANDBY:
            self.guard_gone("the listener was restarted after an internal error")

    def leading(self, lease: Lease) -> None:
        self.status.holder, self.status.epoch = lease.holder, lease.epoch
        self._metrics.guard_held.labels(mailbox=self._mailbox).set(1)
        self._metrics.epoch.labels(mailbox=self._mailbox).set(lease.epoch)
        self.fire(Event.GUARD_ACQUIRED)
        before = lease.taken_from
        taken = {} if before is None else {"taken_from": before, "taken_from_epoch": lease.epoch - 1}
        log.info("guard_acquired", epoch=lease.epoch, **taken)

    def guard_gone(self, reason: str) -> None:
        self.status.holder = None
        self._blame(None, reason)
        self._metrics.guard_held.labels(mailbox=self._mailbox).set(0)
        self.fire(Event.GUARD_LOST)
        log.warning("guard_lost", error=reason)

    def standing_by(self, holder: str | None) -> None:
        """The guard was seen in other hands."""
        if self.status.holder != holder or self.status.standby_seen_mono is None:
            log.info("standing_by", holder=holder)
        self.status.holder, self.status.failures = holder, 0
        self._blame(None, None)
        self.status.standby_seen_mono = self._clock.boot()

    def standby_failed(self, reason: str, delay_seconds: float) -> None:
        """The guard could not even be asked for."""
        self.status.failures += 1
        self._blame(None, reason)
        self._metrics.db_errors.inc()
        self._say("guard_unreachable", reason, delay_seconds)

    def failed(self, failure: Failure, reason: str, delay_seconds: float) -> None:
        """A session ended in a failure; the next one starts after `delay_seconds`."""
        self.status.failures += 1
        self.status.reconnects += 1
        self._blame(failure, reason)
        if self.status.state is State.IDLING:
            self._metrics.idle.labels(mailbox=self._mailbox, outcome="error").inc()
        self._metrics.reconnects.labels(mailbox=self._mailbox, reason=failure).inc()
        if failure is Failure.AUTH:
            self._metrics.auth_failures.labels(mailbox=self._mailbox).inc()
        if failure is Failure.DATABASE:
            self._metrics.db_errors.inc()
        self.fire(Event.FAILED)
        if self.status.state is State.BACKOFF:
            self.status.next_retry_at = self._clock.now() + timedelta(seconds=delay_seconds)
        self._say("session_failed", reason, delay_seconds, reason=failure)
        self.status.notify()

    def _blame(self, failure: Failure | None, reason: str | None) -> None:
        self.status.last_failure, self.status.last_error = failure, reason

    def _say(self, event: str, error: str, delay_seconds: float, **more: object) -> None:
        """One line at growing intervals for a failure that repeats."""
        count = self._repeats.admit_error(f"{event}: {error}")
        if count:
            retry = round(delay_seconds, 1)
            log.error(event, error=error, retry_in_seconds=retry, failures=self.status.failures, times=count, **more)

    def positioned(self, last_uid: Uid, backlog: int) -> None:
        self.status.last_uid, self.status.backlog = last_uid, backlog
        self._metrics.backlog_messages.labels(mailbox=self._mailbox).set(backlog)
        self.status.last_progress_mono = self._clock.boot()

    def landed(self, mails: Sequence[PreparedMail], latency_seconds: float | None) -> None:
        """These mails were committed; `latency_seconds` since the server's hint, None without one."""
        if not mails:
            return
        now = self._clock.now()
        for mail in mails:
            self._metrics.messages_landed.labels(mailbox=self._mailbox, status=mail.status).inc()
            delivery_seconds = (now - mail.listed.internal_date).total_seconds()
            self._metrics.delivery_latency_seconds.labels(mailbox=self._mailbox).observe(max(0.0, delivery_seconds))
            if latency_seconds is not None:
                self._metrics.landing_latency_seconds.labels(mailbox=self._mailbox).observe(latency_seconds)
        self.status.last_landed_at = now
        self._metrics.last_landed_timestamp_seconds.labels(mailbox=self._mailbox).set(now.timestamp())
        more = {} if latency_seconds is None else {"latency_seconds": round(latency_seconds, 4)}
        log.info("landed", mails=len(mails), first_uid=mails[0].listed.uid, last_uid=mails[-1].listed.uid, **more)

    def missed_push(self, mails: int) -> None:
        """A sync found mail that the server had not announced."""
        self._metrics.missed_push.labels(mailbox=self._mailbox).inc(mails)
        log.warning("missed_push", mails=mails)

    def synced(self) -> None:
        """A sync found the folder drained: the only thing that ends a row of failures."""
        now = self._clock.now()
        if self.status.failures:
            log.info("recovered", failures=self.status.failures, error=self.status.last_error)
        self._repeats.forget()
        self.status.failures = 0
        self._blame(None, None)
        self.status.last_sync_at, self.status.last_sync_mono = now, self._clock.boot()
        self._metrics.last_sync_timestamp_seconds.labels(mailbox=self._mailbox).set(now.timestamp())

    def waiting(self, seconds: float) -> None:
        self.status.next_wait_over_at = self._clock.now() + timedelta(seconds=seconds)

    def waited(self, *, pushed: bool) -> None:
        outcome = "push" if pushed else "timeout"
        self._metrics.idle.labels(mailbox=self._mailbox, outcome=outcome).inc()
        if pushed:
            self.status.last_push_at = self._clock.now()

    def stopped(self) -> None:
        """The listener is gone for good; in order."""
        self._metrics.guard_held.labels(mailbox=self._mailbox).set(0)
        self.status.holder = None
        if self.status.state is not State.DRAINING:
            self.fire(Event.STOP)
        self.fire(Event.STOPPED)
