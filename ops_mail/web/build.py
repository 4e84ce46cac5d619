"""From what is known to what is shown: one `Snapshot`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ops_mail import __version__
from ops_mail.core.status import ProcessStatus
from ops_mail.store.model import InstanceState
from ops_mail.store.overview_model import MailLine, Overview, Tally
from ops_mail.web.display import REASON_CHARS, SENDER_CHARS, SUBJECT_CHARS, clean, without_content
from ops_mail.web.look import Look
from ops_mail.web.mailboxes import foreign_mailbox, own_mailbox, rows_by_key
from ops_mail.web.probes import database_word, health_view, is_ready
from ops_mail.web.snapshot import InstanceView, MailboxView, MailView, OverviewView, Snapshot

_ID_CHARS = 255


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a snapshot is made from. `totals` are rows by status, counted to the end but less often."""

    status: ProcessStatus
    reasons: list[str]
    look: Look
    totals: Mapping[str, int]
    now: datetime
    now_boot: float
    content_shown: bool
    sync_limit_seconds: float
    lease_seconds: float


def build_snapshot(facts: Facts) -> Snapshot:
    """The snapshot. While the database is down it holds what memory knows and the error."""
    status, overview = facts.status, facts.look.overview
    _, health = health_view(status, facts.reasons)
    database = database_word(status)
    error = (status.database_error or facts.look.error) if status.enabled else None
    if error is not None or not status.enabled:
        overview = None
    return Snapshot(
        now=facts.now,
        status=health["status"],
        reasons=tuple(facts.reasons),
        instance=status.instance,
        instance_id=status.instance_id,
        version=__version__,
        role=status.role,
        ready=is_ready(status, facts.now_boot) and not facts.reasons,
        database=database,
        database_error=clean(error, REASON_CHARS) or None,
        started_at=status.started_at,
        modules=dict(status.modules),
        content_shown=facts.content_shown,
        mailboxes=_mailboxes(facts, overview),
        overview=None if overview is None else _overview(facts, overview),
    )


def _mailboxes(facts: Facts, overview: Overview | None) -> tuple[MailboxView, ...]:
    rows = {} if overview is None else rows_by_key(overview.folders)
    own = [own_mailbox(mailbox, rows.pop(mailbox.key, None), facts.now_boot) for mailbox in facts.status.mailboxes]
    at = facts.now if overview is None else overview.at
    foreign = [foreign_mailbox(row, at, facts.sync_limit_seconds) for row in rows.values()]
    return (*own, *foreign)


def _overview(facts: Facts, overview: Overview) -> OverviewView:
    shown = facts.content_shown
    return OverviewView(
        at=overview.at,
        hours=overview.hours,
        messages={status: _total(tally, facts.totals.get(status, 0)) for status, tally in overview.statuses.items()},
        set_aside=tuple(_mail(line, shown) for line in overview.set_aside),
        latest=tuple(_mail(line, shown) for line in overview.latest) if shown else None,
        instances=tuple(_instance(instance, overview, facts) for instance in overview.instances),
    )


def _total(tally: Tally, counted: int) -> Tally:
    """Where counting stopped early, the number of the slower count through all rows, if there was one."""
    return Tally(counted) if tally.at_least and counted > tally.count else tally


def _mail(line: MailLine, shown: bool) -> MailView:
    reason = line.error or ""
    if not shown:
        reason = without_content(reason, line.subject, line.from_addr, line.from_name)
    sender = f"{line.from_name} <{line.from_addr}>" if line.from_name and line.from_addr else None
    return MailView(
        mailbox=line.mailbox,
        folder=line.folder,
        uid=line.uid,
        status=line.status,
        attempts=line.attempts,
        reason=clean(reason, REASON_CHARS),
        size_bytes=line.size_bytes,
        received_at=line.received_at,
        landed_at=line.landed_at,
        updated_at=line.updated_at,
        subject=clean(line.subject, SUBJECT_CHARS) if shown else None,
        sender=clean(sender or line.from_addr or line.from_name, SENDER_CHARS) if shown else None,
    )


def _instance(instance: InstanceState, overview: Overview, facts: Facts) -> InstanceView:
    leads = tuple(
        str(row.cursor.key)
        for row in overview.folders
        if row.cursor.lease_live and row.cursor.holder == instance.instance
    )
    if instance.age_seconds > 2 * facts.lease_seconds:
        duty = "gone"
    elif instance.role == "consumer":
        duty = "consumer"
    else:
        duty = "leader" if leads else "standby"
    return InstanceView(
        instance=clean(instance.instance, _ID_CHARS),
        here=instance.instance == facts.status.instance_id,
        role=instance.role,
        duty=duty,
        mailboxes=leads,
        started_at=instance.started_at,
        heartbeat_at=instance.heartbeat_at,
    )
