"""The answers of `/healthz` and `/readyz`; pure."""

from __future__ import annotations

from typing import Any

from ops_mail import __version__
from ops_mail.core.health import mailbox_readiness
from ops_mail.core.status import MailboxStatus, ProcessStatus


def health_view(status: ProcessStatus, reasons: list[str]) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of `/healthz`: this process and its tasks only, nothing remote."""
    about = {"instance": status.instance, "version": __version__}
    if reasons:
        return 503, {"status": "stuck", "reasons": reasons, **about}
    return 200, {"status": "alive" if status.enabled else "disabled", **about}


def ready_view(status: ProcessStatus, now_boot: float) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of `/readyz`. A disabled process has nothing to get ready for: it is ready."""
    mailboxes = [_mailbox_ready(mailbox, now_boot) for mailbox in status.mailboxes]
    ready = is_ready(status, now_boot)
    body: dict[str, Any] = {
        "ready": ready,
        "role": status.role,
        "database": database_word(status),
        "mailboxes": mailboxes,
    }
    if status.enabled and status.database_error is not None:
        body["reason"] = status.database_error
    return (200 if ready else 503), body


def is_ready(status: ProcessStatus, now_boot: float) -> bool:
    """Whether all that this process should do is being done."""
    if not status.enabled:
        return True
    return status.database_ok and all(mailbox_readiness(mailbox, now_boot).ready for mailbox in status.mailboxes)


def database_word(status: ProcessStatus) -> str:
    """`ok`, `down`, or `unused` by a disabled process."""
    if not status.enabled:
        return "unused"
    return "ok" if status.database_ok else "down"


def sync_age_seconds(mailbox: MailboxStatus, now_boot: float) -> float | None:
    """How long ago the last sync ended; None = never in this process."""
    return None if mailbox.last_sync_mono is None else round(now_boot - mailbox.last_sync_mono, 1)


def _mailbox_ready(mailbox: MailboxStatus, now_boot: float) -> dict[str, Any]:
    verdict = mailbox_readiness(mailbox, now_boot)
    return {
        "name": mailbox.key.mailbox,
        "folder": mailbox.key.folder,
        "state": mailbox.state.value,
        "ready": verdict.ready,
        "reason": verdict.reason,
        "holder": mailbox.holder,
        "backlog": mailbox.backlog,
        "last_sync_age_seconds": sync_age_seconds(mailbox, now_boot),
    }
