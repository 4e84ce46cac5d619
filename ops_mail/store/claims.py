"""Taking mails into one's hands for handling, keeping them there, and finding those whose hands are gone.

A claim is a row in `processing` with a lease_id of its own; whoever does not know the lease_id any more (because the
lease ran out and another process took the row) can change nothing in it. Rows are found by the index (status,
next_attempt_at): the done ones, however many, are never looked at, and rows locked by others are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.handler_order import UNFINISHED, Head, next_in_order
from ops_mail.core.mail import MessageStatus
from ops_mail.store.columns import db_now
from ops_mail.store.schema import attempt, cursor, message

DUE_INDEX = "ops_mail_message_by_due"
_CLAIMABLE = (MessageStatus.LANDED, MessageStatus.RETRY)
_COLUMNS = (
    message.c.id,
    message.c.mailbox,
    message.c.attempts,
    message.c.attempts_forgiven,
    message.c.crashes,
    message.c.size_bytes,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One mail in the hands of one process. `attempt_no` counts all attempts ever, `attempts` those that count now.

    `suspect`: the last attempt ended without a word, so this mail may be the one that took its process down.
    """

    message_pk: int
    mailbox: str
    lease_id: str
    attempt_no: int
    attempts: int
    suspect: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ClaimWish:
    """At most `limit` mails, at most one of them a suspect and only with `suspect`; never one of `exclude`.

    `turn` is to grow with each claim: at odd ones new mails come first, at even ones retries, and in order each folder
    is looked at first in its turn; so nothing waits for ever for what is always there.
    """

    lease_id: str
    limit: int
    handler: str
    instance: str
    suspect: bool = True
    turn: int = 1
    exclude: frozenset[int] = frozenset()


async def anything_due(connection: AsyncConnection) -> bool:
    """Whether a claim could find something; takes no lock."""
    for condition in (_landed(), _retry_due()):
        found = sa.select(message.c.id).where(*condition).limit(1)
        if (await connection.execute(_by_due_index(found))).first() is not None:
            return True
    return False


async def claim(connection: AsyncConnection, wish: ClaimWish, lease_seconds: float) -> list[Claim]:
    """Mails in no particular order."""
    landed = (_landed(), message.c.id)
    retries = ((*_retry_due(), message.c.crashes == 0), message.c.next_attempt_at)
    rows: list[sa.Row[Any]] = []
    for condition, order in (landed, retries) if wish.turn % 2 else (retries, landed):
        rows += await _lock(connection, condition, order, wish.limit - len(rows), wish.exclude)
    if wish.suspect:
        suspects, room = (*_retry_due(), message.c.crashes > 0), min(1, wish.limit - len(rows))
        rows += await _lock(connection, suspects, message.c.next_attempt_at, room, wish.exclude)
    return await _take(connection, rows, wish, lease_seconds)


async def claim_in_order(connection: AsyncConnection, wish: ClaimWish, lease_seconds: float) -> list[Claim]:
    """At most one mail a folder: the first one that is not finished, if it is due.

    The heads are read without locks: a reader that skipped locked rows would take the second mail for the first. What
    was finished by then stays finished, so the first of the heads is the right one unless it has been taken meanwhile,
    which the locking read sees.
    """
    rows: list[sa.Row[Any]] = []
    suspect = wish.suspect
    folders = (await connection.execute(sa.select(cursor.c.mailbox, cursor.c.folder).order_by(cursor.c.id))).all()
    first = wish.turn % max(1, len(folders))
    for folder in (*folders[first:], *folders[:first]):
        if len(rows) >= wish.limit:
            break
        head = next_in_order(await _heads(connection, folder.mailbox, folder.folder))
        if head is None:
            continue
        due = sa.or_(message.c.status == MessageStatus.LANDED.value, message.c.next_attempt_at <= db_now())
        still = (message.c.id == head.id, message.c.status.in_([status.value for status in _CLAIMABLE]), due)
        free = () if suspect else (message.c.crashes == 0,)
        found = await _lock(connection, (*still, *free), message.c.id, 1, wish.exclude, by_due_index=False)
        suspect = suspect and not any(row.crashes for row in found)
        rows += found
    return await _take(connection, rows, wish, lease_seconds)


async def renew(connection: AsyncConnection, held: Sequence[Claim], lease_seconds: float) -> set[str]:
    """Prolongs the leases; returns the lease_ids and ids, as `lost_key`, of claims that are somebody else's by now.

    A row that is locked is left out this time: it is being written down just now, perhaps slowly, and a wait for it
    would cost all others their leases.
    """
    ids, leases = [one.message_pk for one in held], sorted({one.lease_id for one in held})
    mine = (message.c.id.in_(ids), message.c.lease_id.in_(leases))
    lock = sa.select(message.c.id).where(*mine).order_by(message.c.id).with_for_update(skip_locked=True)
    free = list((await connection.execute(lock)).scalars())
    if free:
        prolong = sa.update(message).where(message.c.id.in_(free)).values(lease_until=db_now(lease_seconds))
        await connection.execute(prolong)
    if len(free) == len(held):
        return set()
    rows = await connection.execute(sa.select(message.c.id, message.c.lease_id).where(*mine))
    still = {lost_key(row.id, row.lease_id) for row in rows}
    return {lost_key(one.message_pk, one.lease_id) for one in held} - still


def lost_key(message_pk: int, lease_id: str) -> str:
    """Names one claim of one mail."""
    return f"{lease_id}/{message_pk}"


async def give_back(connection: AsyncConnection, claims: Sequence[Claim]) -> None:
    """Undoes claims whose handler was never started: the rows are as they were, due at once."""
    ids, leases = [one.message_pk for one in claims], sorted({one.lease_id for one in claims})
    mine = sa.select(message.c.id).where(message.c.id.in_(ids), message.c.lease_id.in_(leases)).order_by(message.c.id)
    still = list((await connection.execute(mine.with_for_update())).scalars())
    if not still:
        return
    first = message.c.attempts <= 1
    # In this order: MySQL assigns from left to right, so what depends on the old count of attempts comes before it.
    undo = sa.update(message).where(message.c.id.in_(still))
    undo = undo.ordered_values(
        (message.c.status, sa.case((first, MessageStatus.LANDED.value), else_=MessageStatus.RETRY.value)),
        (message.c.next_attempt_at, sa.case((first, sa.null()), else_=db_now())),
        (message.c.attempts, message.c.attempts - 1),
        (message.c.lease_id, None),
        (message.c.lease_until, None),
    )
    await connection.execute(undo)
    await connection.execute(sa.delete(attempt).where(attempt.c.message_pk.in_(still), attempt.c.outcome.is_(None)))


def _landed() -> tuple[sa.ColumnElement[bool], ...]:
    # A landed mail has no time: with both columns fixed the index itself is in the order of ids.
    return (message.c.status == MessageStatus.LANDED.value, message.c.next_attempt_at.is_(None))


def _retry_due() -> tuple[sa.ColumnElement[bool], ...]:
    return (message.c.status == MessageStatus.RETRY.value, message.c.next_attempt_at <= db_now())


def _by_due_index(select: sa.Select[Any]) -> sa.Select[Any]:
    """With statistics of another hour a server may prefer to walk the whole primary key for `ORDER BY id LIMIT 4`."""
    hint = f"FORCE INDEX ({DUE_INDEX})"
    return select.with_hint(message, hint, "mysql").with_hint(message, hint, "mariadb")


async def _lock(
    connection: AsyncConnection,
    condition: tuple[sa.ColumnElement[bool], ...],
    order: sa.ColumnElement[Any],
    limit: int,
    exclude: Iterable[int],
    *,
    by_due_index: bool = True,
) -> Sequence[sa.Row[Any]]:
    if limit <= 0:
        return ()
    others = sorted(exclude)
    wanted = sa.select(*_COLUMNS).where(*condition, *([message.c.id.not_in(others)] if others else []))
    wanted = wanted.order_by(order).limit(limit).with_for_update(skip_locked=True)
    return (await connection.execute(_by_due_index(wanted) if by_due_index else wanted)).all()


async def _take(
    connection: AsyncConnection, rows: Sequence[sa.Row[Any]], wish: ClaimWish, lease_seconds: float
) -> list[Claim]:
    if not rows:
        return []
    take = (
        sa.update(message)
        .where(message.c.id.in_([row.id for row in rows]))
        .values(
            status=MessageStatus.PROCESSING.value,
            attempts=message.c.attempts + 1,
            next_attempt_at=None,
            lease_id=wish.lease_id,
            lease_until=db_now(lease_seconds),
            updated_at=db_now(),
        )
    )
    await connection.execute(take)
    claims = [_claim(row, wish.lease_id) for row in rows]
    started = (await connection.execute(sa.select(db_now()))).scalar_one()
    about = {"handler": wish.handler[:255], "instance": wish.instance[:255], "started_at": started}
    await connection.execute(
        sa.insert(attempt), [{"message_pk": one.message_pk, "attempt_no": one.attempt_no, **about} for one in claims]
    )
    return claims


def _claim(row: sa.Row[Any], lease_id: str) -> Claim:
    return Claim(
        message_pk=row.id,
        mailbox=row.mailbox,
        lease_id=lease_id,
        attempt_no=row.attempts + 1,
        attempts=row.attempts + 1 - row.attempts_forgiven,
        suspect=row.crashes > 0,
        size_bytes=row.size_bytes,
    )


async def _heads(connection: AsyncConnection, mailbox: str, folder: str) -> list[Head]:
    """The first mail of each unfinished status: four steps into the index, however long the folder is."""
    due = sa.case((message.c.next_attempt_at <= db_now(), 1), else_=0)
    parts = []
    for status in UNFINISHED:
        is_due = {MessageStatus.LANDED: sa.literal(1), MessageStatus.RETRY: due}.get(status, sa.literal(0))
        first = (
            sa.select(message.c.id, message.c.uid_validity, message.c.uid, is_due.label("due"))
            .where(message.c.mailbox == mailbox, message.c.folder == folder, message.c.status == status.value)
            .order_by(message.c.uid_validity, message.c.uid)
            .limit(1)
            .subquery(f"first_{status.value}")
        )
        parts.append(sa.select(first))
    rows = await connection.execute(sa.union_all(*parts))
    return [Head(row.id, row.uid_validity, row.uid, bool(row.due)) for row in rows]
