"""The audit trail: what the system or an operator changed, beyond the ordinary course of a mail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.audit_action import AuditAction
from ops_mail.core.ids import FolderKey, UidValidity
from ops_mail.store.columns import db_now
from ops_mail.store.schema import audit

_NOTED = "ops_mail_audit"
_RECENT = 50  # numberings of one mailbox looked through for the one that is being counted


def take_noted(connection: AsyncConnection) -> list[AuditAction]:
    """The actions noted on this connection since this was last asked."""
    noted: list[AuditAction] = connection.info.pop(_NOTED, [])
    return noted


async def add_audit(
    connection: AsyncConnection,
    actor: str,
    action: AuditAction,
    mailbox: str | None,
    message_pk: int | None,
    detail: Mapping[str, Any] | None,
) -> None:
    """One row, in the caller's transaction; counted when that is committed."""
    connection.info.setdefault(_NOTED, []).append(action)
    values = {"actor": actor, "action": action.value, "mailbox": mailbox, "message_pk": message_pk, "detail": detail}
    await connection.execute(sa.insert(audit).values(at=db_now(), **values))


async def add_numbering(
    connection: AsyncConnection, key: FolderKey, reason: str, old: UidValidity | None, new: UidValidity, rows: int
) -> None:
    """The row that will count how many mails of the old numbering were found again in the new one."""
    detail = {"folder": key.folder, "reason": reason, "old": old, "new": new, "rows_before": rows, "rekeyed": 0}
    await add_audit(connection, "system", AuditAction.REKEYED, key.mailbox, None, detail)


async def rekeyed(connection: AsyncConnection, key: FolderKey, new: UidValidity) -> int:
    """How many mails of the folder's present numbering had landed under an older one."""
    recent = sa.select(audit.c.detail).where(*_numberings(key)).order_by(audit.c.id.desc()).limit(_RECENT)
    details = (await connection.execute(recent)).scalars()
    mine = [detail for detail in details if detail and detail.get("folder") == key.folder and detail.get("new") == new]
    return sum(detail.get("rekeyed", 0) for detail in mine)


async def count_rekeyed(connection: AsyncConnection, key: FolderKey, new: UidValidity, count: int) -> None:
    """Adds `count` to the row of the folder's present numbering. Only the holder of the guard does, so none is lost."""
    recent = sa.select(audit.c.id, audit.c.detail).where(*_numberings(key)).order_by(audit.c.id.desc()).limit(_RECENT)
    for row in await connection.execute(recent):
        detail = row.detail or {}
        if detail.get("folder") == key.folder and detail.get("new") == new:
            changed = {**detail, "rekeyed": detail.get("rekeyed", 0) + count}
            await connection.execute(sa.update(audit).where(audit.c.id == row.id).values(detail=changed))
            return
    detail = {"folder": key.folder, "reason": "found", "old": None, "new": new, "rekeyed": count}
    await add_audit(connection, "system", AuditAction.REKEYED, key.mailbox, None, detail)


def _numberings(key: FolderKey) -> tuple[sa.ColumnElement[bool], ...]:
    return (audit.c.action == AuditAction.REKEYED.value, audit.c.mailbox == key.mailbox)
