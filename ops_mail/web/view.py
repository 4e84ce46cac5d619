"""The process status as the JSON that the endpoints answer; pure."""

from __future__ import annotations

from datetime import datetime
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
    ready = not status.enabled or (status.database_ok and all(mailbox["ready"] for mailbox in mailboxes))
    body = {
        "ready": ready,
        "role": status.role,
        "database": "ok" if status.database_ok else "down",
        "mailboxes": mailboxes,
    }
    if not status.enabled:
        body["database"] = "unused"
    elif status.database_error is not None:
        body["reason"] = status.database_error
    return (200 if ready else 503), body


def _mailbox_ready(mailbox: MailboxStatus, now_boot: float) -> dict[str, Any]:
    verdict = mailbox_readiness(mailbox, now_boot)
    age = None if mailbox.last_sync_mono is None else round(now_boot - mailbox.last_sync_mono, 1)
    return {
        "name": mailbox.key.mailbox,
        "folder": mailbox.key.folder,
        "state": mailbox.state.value,
        "ready": verdict.ready,
        "reason": verdict.reason,
        "holder": mailbox.holder,
        "backlog": mailbox.backlog,
        "last_sync_age_seconds": age,
    }


def status_view(status: ProcessStatus, reasons: list[str], now_boot: float) -> dict[str, Any]:
    """Body of `/api/status`: all that the page shows."""
    _, ready = ready_view(status, now_boot)
    _, health = health_view(status, reasons)
    details = [_mailbox_detail(mailbox) for mailbox in status.mailboxes]
    ready["mailboxes"] = [plain | detail for plain, detail in zip(ready["mailboxes"], details, strict=True)]
    return {**health, **ready, "started_at": _iso(status.started_at), "modules": status.modules}


def _mailbox_detail(mailbox: MailboxStatus) -> dict[str, Any]:
    return {
        "state_since": _iso(mailbox.state_since),
        "epoch": mailbox.epoch,
        "last_uid": mailbox.last_uid,
        "failures": mailbox.failures,
        "reconnects": mailbox.reconnects,
        "last_error": mailbox.last_error,
        "next_retry_at": _iso(mailbox.next_retry_at),
        "next_wait_over_at": _iso(mailbox.next_wait_over_at),
        "last_push_at": _iso(mailbox.last_push_at),
        "last_sync_at": _iso(mailbox.last_sync_at),
        "last_landed_at": _iso(mailbox.last_landed_at),
        "idle_trusted": mailbox.idle_trusted,
    }


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
