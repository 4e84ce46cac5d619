"""Every metric of ops-mail, in a registry of its own so that two instances can live in one test process."""

from __future__ import annotations

import platform
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from ops_mail import __version__
from ops_mail.core.audit_action import AuditAction
from ops_mail.core.states import State

_LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600)
_LAG_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_MAILBOX = ("mailbox",)


class Metrics:
    """The metrics as attributes, named as in the exposition without the prefix `ops_mail_`."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)

        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(f"ops_mail_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(f"ops_mail_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"ops_mail_{name}", text, labels, registry=registry, buckets=buckets)

        self.build_info = gauge("build_info", "Always 1; the labels tell what runs.", ("version", "python", "role"))
        self.mailbox_state = gauge("mailbox_state", "1 for the state the mailbox is in.", ("mailbox", "state"))
        self.guard_held = gauge("guard_held", "1 while this process holds the mailbox's guard.", _MAILBOX)
        self.epoch = gauge("epoch", "Fencing token of the guard last held here.", _MAILBOX)
        self.messages_landed = counter("messages_landed", "Mails committed, by status.", ("mailbox", "status"))
        self.landing_latency_seconds = histogram(
            "landing_latency_seconds", "From the server's hint of new mail to commit.", _MAILBOX, _LATENCY_BUCKETS
        )
        self.delivery_latency_seconds = histogram(
            "delivery_latency_seconds", "From INTERNALDATE to commit.", _MAILBOX, _LATENCY_BUCKETS
        )
        self.backlog_messages = gauge("backlog_messages", "Mails known on the server, not landed.", _MAILBOX)
        self.last_sync_timestamp_seconds = gauge(
            "last_sync_timestamp_seconds", "Unix time of the last sync that found the folder drained.", _MAILBOX
        )
        self.last_landed_timestamp_seconds = gauge(
            "last_landed_timestamp_seconds", "Unix time of the last commit of a mail.", _MAILBOX
        )
        self.certificate_expiry_timestamp_seconds = gauge(
            "certificate_expiry_timestamp_seconds", "Unix time at which the IMAP server's certificate ends.", _MAILBOX
        )
        self.idle = counter("idle", "IDLE waits that ended, by outcome.", ("mailbox", "outcome"))
        self.missed_push = counter("missed_push", "Mails that a sync found though no push announced them.", _MAILBOX)
        self.reconnects = counter("reconnects", "Sessions given up, by reason.", ("mailbox", "reason"))
        self.auth_failures = counter("auth_failures", "Logins that the server refused.", _MAILBOX)
        self.handler_attempts = counter("handler_attempts", "Handler attempts, by outcome.", ("outcome",))
        self.handler_duration_seconds = histogram(
            "handler_duration_seconds", "How long one handler attempt took.", (), _LATENCY_BUCKETS
        )
        self.messages = gauge("messages", "Rows by status, read from the database.", ("status",))
        self.audit = counter("audit", "Audit rows written by this process, by action.", ("action",))
        self.event_loop_lag_seconds = histogram(
            "event_loop_lag_seconds", "How late the event loop came back to a timer.", (), _LAG_BUCKETS
        )
        self.db_errors = counter("db_errors", "Database calls that failed.")

        self.verify_missing_messages = gauge(
            "verify_missing_messages", "Mails on the server without a row, at the last comparison.", _MAILBOX
        )
        self.verify_recovered = counter("verify_recovered", "Missing mails landed after a comparison.", _MAILBOX)
        self.after_actions = counter(
            "after_actions", "Mails acted on at the server after landing, by outcome.", ("mailbox", "outcome")
        )
        self.last_verify_timestamp_seconds = gauge(
            "last_verify_timestamp_seconds", "Unix time of the last whole comparison with the server.", _MAILBOX
        )

    def verified(self, mailbox: str, missing: int, recovered: int, at: datetime) -> None:
        """One whole comparison of a folder with the tables."""
        self.verify_missing_messages.labels(mailbox=mailbox).set(missing - recovered)
        self.verify_recovered.labels(mailbox=mailbox).inc(recovered)
        self.last_verify_timestamp_seconds.labels(mailbox=mailbox).set(at.timestamp())

    def certificate(self, mailbox: str, expires_at: datetime | None) -> None:
        """The certificate of the session that was just opened; None without TLS, and then there is no series."""
        if expires_at is not None:
            self.certificate_expiry_timestamp_seconds.labels(mailbox=mailbox).set(expires_at.timestamp())

    def count_audit(self, action: AuditAction) -> None:
        """One audit row was committed."""
        self.audit.labels(action=action.value).inc()

    def describe_build(self, role: str) -> None:
        """Fill `build_info`, and create what no mailbox has a part in at zero."""
        for action in AuditAction:
            self.audit.labels(action=action.value)
        self.build_info.labels(version=__version__, python=platform.python_version(), role=role).set(1)

    def show_state(self, mailbox: str, state: State) -> None:
        """Exactly one state of the mailbox is 1."""
        for each in State:
            self.mailbox_state.labels(mailbox=mailbox, state=each).set(each is state)

    def prepare_mailbox(self, mailbox: str) -> None:
        """Create every series of a mailbox at zero, so that `rate()` sees the first increment."""
        self.show_state(mailbox, State.STANDBY)
        for metric in (self.missed_push, self.auth_failures, self.landing_latency_seconds):
            metric.labels(mailbox=mailbox)
        self.guard_held.labels(mailbox=mailbox).set(0)
        self.backlog_messages.labels(mailbox=mailbox).set(0)
        self.messages_landed.labels(mailbox=mailbox, status="landed")
        for outcome in ("push", "timeout", "error"):
            self.idle.labels(mailbox=mailbox, outcome=outcome)
