"""Writing down how attempts ended: attempt, next status of the mail and the handler's own writes, all or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.audit_action import AuditAction
from ops_mail.core.mail import MessageStatus
from ops_mail.core.outcome import AttemptOutcome, EndKind, Verdict, decide
from ops_mail.core.textfit import cut_bytes, dump_json, fit
from ops_mail.errors import StoreError, StoreRefused
from ops_mail.store.audit import add_audit
from ops_mail.store.claims import Claim
from ops_mail.store.columns import db_now
from ops_mail.store.edge import first_line, is_contention, is_environment
from ops_mail.store.rows import ERROR_CHARS, TEXT_BYTES
from ops_mail.store.schema import attempt, message
from ops_mail.store.tableguard import SEEN_ONCE

_STALE_LIMIT = 100
# A handler may build a new text for each mail: caches that last as long as the process must not keep them.
_NOT_REMEMBERED = {"compiled_cache": None, SEEN_ONCE: True}
_LOST = "the process died, or lost its lease, during this attempt"


@dataclass(frozen=True, slots=True)
class Write:
    """One statement of a handler on tables of its own (`ops_…`), with named parameters (`:name`)."""

    sql: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """One attempt's end. `result` is JSON or None; `writes` happen if and only if the mail becomes done."""

    claim: Claim
    verdict: Verdict
    result: Any = None
    error: str | None = None
    writes: tuple[Write, ...] = ()


class NotOursError(Exception):
    """A row of a group is not held under the lease it was claimed with; nothing of the group was written."""


async def write_group(connection: AsyncConnection, ends: Sequence[Ended]) -> None:
    """Many ends without writes of their own. Raises NotOursError for the whole group."""
    done = [end for end in ends if end.verdict.status is MessageStatus.DONE]
    if done:
        await _write_done(connection, done)
    for end in ends:
        if end.verdict.status is not MessageStatus.DONE and not await write_one(connection, end):
            raise NotOursError


async def _write_done(connection: AsyncConnection, ends: Sequence[Ended]) -> None:
    ids = [end.claim.message_pk for end in ends]
    leases = sorted({end.claim.lease_id for end in ends})
    update = (
        sa.update(message)
        .where(message.c.id.in_(ids), message.c.lease_id.in_(leases))
        .values(**_row_values(ends[0].verdict, None))
    )
    if (await connection.execute(update)).rowcount != len(ids):
        raise NotOursError
    values: dict[str, Any] = {"outcome": AttemptOutcome.DONE.value, "finished_at": db_now()}
    telling = [end for end in ends if end.result is not None or end.error is not None]
    if telling:
        which = attempt.c.message_pk
        for column, told in (("result", _json_text), ("error", _error_text)):
            cases = [(which == end.claim.message_pk, sa.literal(told(end), sa.Text())) for end in telling]
            values[column] = sa.case(*cases, else_=None)
    await connection.execute(
        sa.update(attempt).where(attempt.c.message_pk.in_(ids), attempt.c.outcome.is_(None)).values(**values)
    )


def _json_text(end: Ended) -> str | None:
    return None if end.result is None else dump_json(end.result)


def _error_text(end: Ended) -> str | None:
    return _fitted(end.error)


async def write_one(connection: AsyncConnection, end: Ended) -> bool:
    """One attempt with all it has to tell. False: the claim is no longer ours, and nothing was written."""
    claim, verdict = end.claim, end.verdict
    update = (
        sa.update(message)
        .where(message.c.id == claim.message_pk, message.c.lease_id == claim.lease_id)
        .values(**_row_values(verdict, end.error))
    )
    if (await connection.execute(update)).rowcount == 0:
        return await _written_before(connection, end)
    if verdict.status is MessageStatus.DONE:
        for write in end.writes:
            await _write_for_handler(connection, write)
    await _close_attempt(connection, claim.message_pk, verdict.outcome, end.error, end.result)
    if verdict.status is MessageStatus.DEAD:
        detail = {"attempts": claim.attempt_no, "outcome": verdict.outcome.value, "error": _first_line(end.error)}
        await add_audit(connection, "system", AuditAction.DEAD, claim.mailbox, claim.message_pk, detail)
    return True


async def _write_for_handler(connection: AsyncConnection, write: Write) -> None:
    """One statement of a handler's own. What is wrong with it is its author's fault, never the database's absence."""
    try:
        await connection.execute(sa.text(write.sql), dict(write.parameters), execution_options=_NOT_REMEMBERED)
    except sa_exc.DBAPIError as error:
        if is_contention(error) or is_environment(error):
            raise
        raise StoreRefused(first_line(error)) from error
    except (sa_exc.SQLAlchemyError, StoreError, OSError):
        raise
    except Exception as error:
        # A driver meets a value that it cannot send, and none of them says so in a class of its own.
        raise StoreRefused(f"{type(error).__name__}: {first_line(error)}") from error


async def write_nothing(connection: AsyncConnection) -> None:
    """A write that changes nothing: a server that is away, frozen or read-only refuses it as any other."""
    await connection.execute(sa.update(message).where(message.c.id == 0).values(attempts=message.c.attempts))


async def recover_stale(connection: AsyncConnection, max_attempts: int) -> list[Verdict]:
    """Ends the attempts whose leases ran out, some at a time; the mails become due again, or dead."""
    stale = (
        sa.select(message.c.id, message.c.mailbox, message.c.attempts, message.c.attempts_forgiven)
        .where(message.c.status == MessageStatus.PROCESSING.value)
        .where(sa.or_(message.c.lease_until.is_(None), message.c.lease_until < db_now()))
        .order_by(message.c.id)
        .limit(_STALE_LIMIT)
        .with_for_update(skip_locked=True)
    )
    verdicts = []
    for row in (await connection.execute(stale)).all():
        verdict = decide(EndKind.LOST, max(1, row.attempts - row.attempts_forgiven), max_attempts)
        values = _row_values(verdict, _LOST)
        await connection.execute(sa.update(message).where(message.c.id == row.id).values(**values))
        await _close_attempt(connection, row.id, verdict.outcome, _LOST, None)
        if verdict.status is MessageStatus.DEAD:
            detail = {"attempts": row.attempts, "outcome": verdict.outcome.value, "error": _LOST}
            await add_audit(connection, "system", AuditAction.DEAD, row.mailbox, row.id, detail)
        verdicts.append(verdict)
    return verdicts


def _row_values(verdict: Verdict, error: str | None) -> dict[str, Any]:
    retry = verdict.status is MessageStatus.RETRY
    values: dict[str, Any] = {
        "status": verdict.status.value,
        "next_attempt_at": db_now(verdict.delay_seconds) if retry else None,
        "lease_id": None,
        "lease_until": None,
        "last_error": None if verdict.status is MessageStatus.DONE else _fitted(error),
        "updated_at": db_now(),
        "crashes": message.c.crashes + 1 if verdict.crashed else 0,
    }
    if verdict.forgiven:
        values["attempts_forgiven"] = message.c.attempts_forgiven + 1
        values["crashes"] = message.c.crashes
    return values


async def _close_attempt(
    connection: AsyncConnection, message_pk: int, outcome: AttemptOutcome, error: str | None, result: Any
) -> None:
    # The open attempt of a row is the latest one: a lease that is lost closes its attempt before the next one begins.
    await connection.execute(
        sa.update(attempt)
        .where(attempt.c.message_pk == message_pk, attempt.c.outcome.is_(None))
        .values(outcome=outcome.value, finished_at=db_now(), error=_fitted(error), result=result)
    )


async def _written_before(connection: AsyncConnection, end: Ended) -> bool:
    """Whether this very end is in the table already: the answer to an earlier COMMIT may have been lost."""
    find = sa.select(attempt.c.outcome).where(
        attempt.c.message_pk == end.claim.message_pk, attempt.c.attempt_no == end.claim.attempt_no
    )
    return end.verdict.outcome.value in list((await connection.execute(find)).scalars())


def _fitted(error: str | None) -> str | None:
    text = fit(error, "error", [], max_chars=ERROR_CHARS)
    return None if text is None else cut_bytes(text, TEXT_BYTES)


def _first_line(error: str | None) -> str:
    fitted = fit((error or "").splitlines()[0] if error else "", "error", [], max_chars=300)
    return fitted or ""
