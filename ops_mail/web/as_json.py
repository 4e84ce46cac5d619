"""A snapshot as the body of `/api/status`; described by `openapi.json`. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ops_mail.store.overview_model import Tally
from ops_mail.web.advice import advice_for
from ops_mail.web.language import Language
from ops_mail.web.snapshot import InstanceView, LeaderView, MailboxView, MailView, OverviewView, Snapshot
from ops_mail.web.when import iso
from ops_mail.web.words import Words

_ENGLISH = Words(Language.ENGLISH)


def as_json(snapshot: Snapshot) -> dict[str, Any]:
    """Plain values for `json.dumps`; times are RFC 3339 in UTC, texts for people English."""
    return {
        "status": snapshot.status,
        "reasons": list(snapshot.reasons),
        "ready": snapshot.ready,
        "instance": snapshot.instance,
        "instance_id": snapshot.instance_id,
        "version": snapshot.version,
        "role": snapshot.role,
        "modules": dict(snapshot.modules),
        "started_at": iso(snapshot.started_at),
        "now": iso(snapshot.now),
        "database": snapshot.database,
        "database_error": snapshot.database_error,
        "content_shown": snapshot.content_shown,
        "mailboxes": [_mailbox(mailbox) for mailbox in snapshot.mailboxes],
        "overview": None if snapshot.overview is None else _overview(snapshot.overview),
    }


def _mailbox(mailbox: MailboxView) -> dict[str, Any]:
    trouble, advice = mailbox.trouble, advice_for(mailbox, _ENGLISH)
    return {
        "name": mailbox.name,
        "folder": mailbox.folder,
        "here": mailbox.here,
        "state": mailbox.state,
        "level": mailbox.level.value,
        "ready": mailbox.ready,
        "reason": mailbox.reason,
        "holder": mailbox.holder,
        "held_here": mailbox.held_here,
        "epoch": mailbox.epoch,
        "last_uid": mailbox.last_uid,
        "backlog": mailbox.backlog,
        "reconnects": mailbox.reconnects,
        "failures": mailbox.failures,
        "last_error": mailbox.last_error,
        "trouble": None if trouble is None else trouble.value,
        "advice": None if advice is None else str(advice),
        "idle_trusted": mailbox.idle_trusted,
        "state_since": _time(mailbox.state_since),
        "next_wait_over_at": _time(mailbox.next_wait_over_at),
        "next_retry_at": _time(mailbox.next_retry_at),
        "last_push_at": _time(mailbox.last_push_at),
        "last_sync_at": _time(mailbox.last_sync_at),
        "last_sync_age_seconds": mailbox.last_sync_age_seconds,
        "last_landed_at": _time(mailbox.last_landed_at),
        "leader": None if mailbox.leader is None else _leader(mailbox.leader),
    }


def _leader(leader: LeaderView) -> dict[str, Any]:
    return {
        "state": leader.state,
        "failures": leader.failures,
        "last_error": leader.last_error,
        "next_retry_at": _time(leader.next_retry_at),
    }


def _overview(overview: OverviewView) -> dict[str, Any]:
    return {
        "at": iso(overview.at),
        "arrivals": [{"hour": iso(hour.start), **_tally(hour.landed)} for hour in overview.hours],
        "messages": {status.value: _tally(tally) for status, tally in overview.messages.items()},
        "dead_letters": [_mail(mail) for mail in overview.set_aside],
        "latest": None if overview.latest is None else [_mail(mail) for mail in overview.latest],
        "instances": [_instance(instance) for instance in overview.instances],
    }


def _tally(tally: Tally) -> dict[str, Any]:
    return {"count": tally.count, "at_least": tally.at_least}


def _mail(mail: MailView) -> dict[str, Any]:
    return {
        "mailbox": mail.mailbox,
        "folder": mail.folder,
        "uid": mail.uid,
        "status": mail.status,
        "attempts": mail.attempts,
        "reason": mail.reason,
        "size_bytes": mail.size_bytes,
        "received_at": _time(mail.received_at),
        "landed_at": iso(mail.landed_at),
        "updated_at": iso(mail.updated_at),
        "subject": mail.subject,
        "sender": mail.sender,
    }


def _instance(instance: InstanceView) -> dict[str, Any]:
    return {
        "instance": instance.instance,
        "here": instance.here,
        "role": instance.role,
        "duty": instance.duty,
        "mailboxes": list(instance.mailboxes),
        "started_at": iso(instance.started_at),
        "heartbeat_at": iso(instance.heartbeat_at),
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else iso(at)
