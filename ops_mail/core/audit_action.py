"""The actions of the audit trail. Operators find each explained in the runbook."""

from __future__ import annotations

from enum import StrEnum


class AuditAction(StrEnum):
    """What was done beyond the ordinary course of a mail: the column `action` of `ops_mail_audit`."""

    DEAD = "dead"
    DEAD_RETRY = "dead_retry"
    DEAD_DISCARD = "dead_discard"
    RECOVERED = "recovered"
    REKEYED = "rekeyed"
    CONTENT_REMOVED = "content_removed"
    REPARSED = "reparsed"
    RELEASED = "released"
