"""What operators do with dead mails. Each change is an audit row that says who made it, in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.audit_action import AuditAction
from ops_mail.core.mail import MessageStatus
from ops_mail.store.audit import add_audit
from ops_mail.store.columns import db_now
from ops_mail.store.database import Database
from ops_mail.store.schema import attempt, audit, message
from ops_mail.store.selection import Selection
from ops_mail.store.stored_mail import StoredMail, load_mails

_BATCH = 100


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One row of `ops_mail_attempt`."""

    attempt_no: int
    handler: str
    instance: str
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None
    result: Any
    error: str | None


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One row of `ops_mail_audit` about a mail."""

    at: datetime
    actor: str
    action: str
    detail: Any


@dataclass(frozen=True, slots=True)
class History:
    """A mail and all that was done with it."""

    mail: StoredMail
    attempts: Sequence[AttemptRecord]
    audit: Sequence[AuditRecord]


async def act_on_dead(database: Database, selection: Selection, action: AuditAction, who: str) -> int:
    """DEAD_RETRY or DEAD_DISCARD all dead mails that are meant; how many there were. In batches, oldest first.

    Each of them once: one that dies again while this runs is not sent back to its handler again and again.
    """
    dead = replace(selection, statuses=(MessageStatus.DEAD,))
    total, after = 0, 0
    while True:
        work = partial(_act, selection=dead, after=after, action=action, who=who)
        done = await database.writing("changing dead mails", work)
        total += len(done)
        if len(done) < _BATCH:
            return total
        after = done[-1]


async def _act(
    connection: AsyncConnection, selection: Selection, after: int, action: AuditAction, who: str
) -> Sequence[int]:
    meant = sa.select(message.c.id, message.c.mailbox, message.c.attempts, message.c.last_error)
    meant = (
        meant.where(message.c.id > after, *selection.conditions())
        .order_by(message.c.id)
        .limit(_BATCH)
        .with_for_update()
    )
    rows = (await connection.execute(meant)).all()
    if not rows:
        return ()
    change: dict[str, Any] = {"updated_at": db_now()}
    if action is AuditAction.DEAD_RETRY:
        # What was tried so far stays counted in `attempts` and recorded, but no longer counts towards the maximum.
        change |= {"status": MessageStatus.RETRY.value, "next_attempt_at": db_now(),
                   "attempts_forgiven": message.c.attempts, "crashes": 0}  # fmt: skip
    else:
        change |= {"status": MessageStatus.SKIPPED.value, "next_attempt_at": None}
    await connection.execute(sa.update(message).where(message.c.id.in_([row.id for row in rows])).values(**change))
    for row in rows:
        error = (row.last_error or "").split("\n", 1)[0][:300]
        detail = {"by": who, "attempts": row.attempts, "error": error}
        await add_audit(connection, "operator", action, row.mailbox, row.id, detail)
    return [row.id for row in rows]


async def history(database: Database, message_pk: int) -> History | None:
    """Everything about one mail; None if there is none."""
    async with database.reading("reading a mail") as connection:
        mail = (await load_mails(connection, [message_pk])).get(message_pk)
        if mail is None:
            return None
        attempts = sa.select(attempt).where(attempt.c.message_pk == message_pk).order_by(attempt.c.id)
        tried = tuple(
            AttemptRecord(
                attempt_no=row.attempt_no,
                handler=row.handler,
                instance=row.instance,
                started_at=row.started_at,
                finished_at=row.finished_at,
                outcome=row.outcome,
                result=row.result,
                error=row.error,
            )
            for row in await connection.execute(attempts)
        )
        changes = sa.select(audit).where(audit.c.mailbox == mail.folder_key.mailbox, audit.c.message_pk == message_pk)
        changed = tuple(
            AuditRecord(at=row.at, actor=row.actor, action=row.action, detail=row.detail)
            for row in await connection.execute(changes.order_by(audit.c.id))
        )
    return History(mail, tried, changed)
