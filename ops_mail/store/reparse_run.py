"""One run of parsing again, from its first mail to its last, however often the process is killed in between.

It is a row of the audit trail (action `reparsed`) that holds how far it has come; so there is one such row a run.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.audit_action import AuditAction
from ops_mail.errors import OpsMailError
from ops_mail.store.columns import db_now
from ops_mail.store.database import Database
from ops_mail.store.schema import audit

_KEPT_IDS = 100


class TakenOver(OpsMailError):
    """Another process goes on with this run."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many mails were parsed (`changed` of them gave other rows), skipped for want of bytes, or failed."""

    parsed: int = 0
    changed: int = 0
    skipped: int = 0
    failed: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.parsed + other.parsed,
            self.changed + other.changed,
            self.skipped + other.skipped,
            self.failed + other.failed,
        )


@dataclass(frozen=True, slots=True)
class Run:
    """All mails up to the id `position` are through; `failed_ids` are the first hundred.

    `holder` names the process that works on it, `by` the person who asked.
    """

    audit_id: int
    holder: str
    by: str
    version: str
    mailbox: str | None
    since: int
    position: int
    tally: Tally
    failed_ids: tuple[int, ...]
    resumed: bool


async def begin_run(database: Database, mailbox: str | None, since: int | None, version: str, by: str) -> Run:
    """A new run after the id `since`; with None the latest one of this mailbox (or of all) goes on if it was cut short.

    A run of another version is not gone on with: what it has parsed, it has parsed otherwise.
    """
    holder = uuid.uuid4().hex

    async def work(connection: AsyncConnection) -> Run:
        run = await _unfinished(connection, mailbox, version, holder) if since is None else None
        if run is not None:
            await connection.execute(sa.update(audit).where(audit.c.id == run.audit_id).values(detail=_detail(run)))
            return run
        begin = since or 0
        run = Run(0, holder, by, version, mailbox, begin, begin, Tally(), (), resumed=False)
        values = {"actor": "operator", "action": AuditAction.REPARSED.value, "mailbox": mailbox, "detail": _detail(run)}
        added = await connection.execute(sa.insert(audit).values(at=db_now(), **values))
        return replace(run, audit_id=added.lastrowid)

    return await database.writing("beginning to parse again", work)


async def save_run(database: Database, run: Run, *, finished: bool = False) -> None:
    """Writes down how far the run has come. Raises TakenOver when another process has gone on with it."""

    async def work(connection: AsyncConnection) -> None:
        find = sa.select(audit.c.detail).where(audit.c.id == run.audit_id).with_for_update()
        detail = (await connection.execute(find)).scalar_one_or_none()
        if detail is None or detail.get("holder") != run.holder:
            raise TakenOver("another `ops-mail reparse` has gone on with this run; this one has stopped")
        new = _detail(run, finished=finished)
        await connection.execute(sa.update(audit).where(audit.c.id == run.audit_id).values(detail=new))

    await database.writing("noting how far parsing has come", work)


def after_batch(run: Run, position: int, tally: Tally, failed_ids: tuple[int, ...]) -> Run:
    """The run with one more batch through."""
    kept = (*run.failed_ids, *failed_ids)[:_KEPT_IDS]
    return replace(run, position=position, tally=run.tally + tally, failed_ids=kept)


async def _unfinished(connection: AsyncConnection, mailbox: str | None, version: str, holder: str) -> Run | None:
    """The latest run, if it was cut short; from now on in the hands of `holder`."""
    latest = (
        sa.select(audit.c.id, audit.c.detail)
        .where(audit.c.action == AuditAction.REPARSED.value, audit.c.mailbox == mailbox)
        .order_by(audit.c.id.desc())
        .limit(1)
        .with_for_update()
    )
    row = (await connection.execute(latest)).one_or_none()
    if row is None or row.detail is None or row.detail["finished"] or row.detail["version"] != version:
        return None
    return _run_of(row.id, mailbox, row.detail, holder)


def _detail(run: Run, *, finished: bool = False) -> dict[str, Any]:
    return {
        "by": run.by,
        "finished": finished,
        "version": run.version,
        "since": run.since,
        "position": run.position,
        "parsed": run.tally.parsed,
        "changed": run.tally.changed,
        "skipped": run.tally.skipped,
        "failed": run.tally.failed,
        "failed_ids": list(run.failed_ids),
        "holder": run.holder,
    }


def _run_of(audit_id: int, mailbox: str | None, detail: Mapping[str, Any], holder: str) -> Run:
    return Run(
        audit_id=audit_id,
        holder=holder,
        by=detail["by"],
        version=detail["version"],
        mailbox=mailbox,
        since=detail["since"],
        position=detail["position"],
        tally=Tally(detail["parsed"], detail["changed"], detail["skipped"], detail["failed"]),
        failed_ids=tuple(detail["failed_ids"]),
        resumed=True,
    )
