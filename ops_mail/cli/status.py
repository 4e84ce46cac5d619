"""`ops-mail status`: what the database says about mailboxes, instances and mails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ops_mail.cli.database import opened_store
from ops_mail.cli.quiet import quiet_logs
from ops_mail.cli.readiness import Judged, judge_all
from ops_mail.cli.terminal import write_json
from ops_mail.core.ids import FolderKey
from ops_mail.core.mail import MessageStatus
from ops_mail.settings import Settings
from ops_mail.store import InstanceState


@dataclass(frozen=True, slots=True)
class Overview:
    """All that is shown."""

    mailboxes: Sequence[Judged]
    instances: Sequence[InstanceState]
    counts: Mapping[MessageStatus, int]
    lease_seconds: float
    at: datetime

    @property
    def ready(self) -> bool:
        """Whether every expected mailbox is."""
        return all(mailbox.ready for mailbox in self.mailboxes if mailbox.expected)

    def holds(self, instance: InstanceState) -> list[str]:
        """The mailboxes that `instance` leads; none = it stands by (or only handles)."""
        return [
            str(mailbox.key)
            for mailbox in self.mailboxes
            if mailbox.cursor is not None and mailbox.cursor.lease_live and mailbox.cursor.holder == instance.instance
        ]

    def duty(self, instance: InstanceState) -> str:
        """`leader`, `standby` or `consumer`; `gone` when its heartbeat is older than two leases."""
        if instance.age_seconds > 2 * self.lease_seconds:
            return "gone"
        if instance.role == "consumer":
            return "consumer"
        return "leader" if self.holds(instance) else "standby"


def status_command(settings: Settings, *, as_json: bool) -> int:
    """1 when a mailbox is not ready."""
    quiet_logs()
    overview = asyncio.run(look(settings))
    if as_json:
        write_json(overview_json(overview))
    else:
        from ops_mail.cli.status_tables import print_overview  # noqa: PLC0415 - rich is imported only when it draws

        print_overview(overview)
    return 0 if overview.ready else 1


async def look(settings: Settings) -> Overview:
    """One look at the database. Raises StoreError."""
    async with opened_store(settings) as store:
        cursors = await store.list_cursors()
        instances = await store.list_instances()
        counts = await store.count_by_status()
    expected = [FolderKey(mailbox.name, mailbox.folder) for mailbox in settings.mailboxes]
    now = datetime.now(UTC)
    judged = judge_all(cursors, expected, now, settings.session.sync_limit_seconds)
    return Overview(judged, instances, counts, settings.store.lease_seconds, now)


def overview_json(overview: Overview) -> dict[str, object]:
    """For machines."""
    return {
        "at": _iso(overview.at),
        "ready": overview.ready,
        "mailboxes": [_mailbox_json(mailbox) for mailbox in overview.mailboxes],
        "instances": [
            {
                "instance": instance.instance,
                "role": instance.role,
                "duty": overview.duty(instance),
                "mailboxes": overview.holds(instance),
                "started_at": _iso(instance.started_at),
                "heartbeat_age_seconds": round(instance.age_seconds, 1),
            }
            for instance in overview.instances
        ],
        "messages": {status.value: overview.counts.get(status, 0) for status in MessageStatus},
    }


def _mailbox_json(mailbox: Judged) -> dict[str, object]:
    about: dict[str, object] = {
        "name": mailbox.key.mailbox,
        "folder": mailbox.key.folder,
        "configured": mailbox.expected,
        "ready": mailbox.ready,
        "reason": mailbox.reason,
    }
    if (cursor := mailbox.cursor) is None:
        return about
    age = mailbox.sync_age_seconds
    return about | {
        "state": cursor.state,
        "holder": cursor.holder if cursor.lease_live else None,
        "epoch": cursor.epoch,
        "uid_validity": cursor.uid_validity,
        "last_uid": cursor.last_uid,
        "failures": cursor.failures,
        "last_error": cursor.last_error,
        "next_retry_at": _iso(cursor.next_retry_at),
        "last_push_at": _iso(cursor.last_push_at),
        "last_sync_at": _iso(cursor.last_sync_at),
        "last_sync_age_seconds": None if age is None else round(age, 1),
    }


def _iso(when: datetime | None) -> str | None:
    return None if when is None else when.isoformat()
