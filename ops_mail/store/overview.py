"""The reads behind the page for people: each bounded in rows and served by an index, whatever the tables hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.ids import FolderKey
from ops_mail.core.mail import MessageStatus
from ops_mail.store.columns import db_now
from ops_mail.store.database import Database
from ops_mail.store.model import CursorState, InstanceState
from ops_mail.store.overview_model import FolderRow, Hour, MailLine, Overview, Tally
from ops_mail.store.schema import cursor, instance, message

READ_SECONDS = 8.0
HOURS = 24
STATUS_LIMIT = 10_000
HOUR_LIMIT = 50_000
"""Rows are counted one by one in the index: beyond these numbers a `Tally` says "at least"."""
LIST_LIMIT = 20
FOLDER_LIMIT = 200
INSTANCE_LIMIT = 50
TEXT_CHARS = 300
ERROR_CHARS = 600

SET_ASIDE = (MessageStatus.DEAD, MessageStatus.QUARANTINED, MessageStatus.OVERSIZE)
"""What no further attempt is made for."""

_LIVE = sa.case((cursor.c.lease_until > db_now(), 1), else_=0).label("lease_live")


class OverviewReader:
    """Reads an `Overview`; remembers the hours that are over, so that a look costs the same after a busy day."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._past: dict[datetime, Tally] = {}

    async def read(self) -> Overview:
        """Raises a StoreError."""
        async with self._database.reading("reading the overview", READ_SECONDS) as connection:
            now: datetime = (await connection.execute(sa.select(db_now().label("now")))).scalar_one()
            return Overview(
                at=now,
                folders=await read_folders(connection),
                instances=await read_instances(connection),
                hours=await self._hours(connection, now),
                statuses=await count_statuses(connection),
                set_aside=await read_set_aside(connection),
                latest=await read_latest(connection),
            )

    async def _hours(self, connection: AsyncConnection, now: datetime) -> tuple[Hour, ...]:
        this_hour = now.replace(minute=0, second=0, microsecond=0)
        starts = [this_hour - timedelta(hours=back) for back in reversed(range(HOURS))]
        # The last hour stays open as well: a landing that took minutes carries the time at which it began.
        still_open = starts[-2:]
        due = [start for start in starts if start in still_open or start not in self._past]
        counted = await count_hours(connection, due)
        tallies = self._past | counted
        self._past = {start: tallies[start] for start in starts if start not in still_open}
        return tuple(Hour(start, tallies[start]) for start in starts)


async def count_hours(connection: AsyncConnection, starts: Sequence[datetime]) -> dict[datetime, Tally]:
    """How many mails landed in the hour from each of `starts`; by the index on landed_at."""
    if not starts:
        return {}
    hour = timedelta(hours=1)
    rows = (sa.and_(message.c.landed_at >= start, message.c.landed_at < start + hour) for start in starts)
    counts = await _count_each(connection, list(rows), HOUR_LIMIT)
    return dict(zip(starts, counts, strict=True))


async def count_statuses(connection: AsyncConnection) -> dict[MessageStatus, Tally]:
    """How many mails have each status; by the index on status."""
    statuses = list(MessageStatus)
    counts = await _count_each(connection, [message.c.status == status.value for status in statuses], STATUS_LIMIT)
    return dict(zip(statuses, counts, strict=True))


async def _count_each(
    connection: AsyncConnection, conditions: Sequence[sa.ColumnElement[bool]], limit: int
) -> list[Tally]:
    """The number of rows for each condition, counted up to `limit`; all in one statement."""
    parts = []
    for place, condition in enumerate(conditions):
        some = sa.select(message.c.id).where(condition).limit(limit + 1).subquery(f"part_{place}")
        parts.append(sa.select(sa.literal(place).label("place"), sa.func.count().label("n")).select_from(some))
    found = {row.place: int(row.n) for row in await connection.execute(sa.union_all(*parts))}
    counts = (found[place] for place in range(len(conditions)))
    return [Tally(min(count, limit), count > limit) for count in counts]


async def read_folders(connection: AsyncConnection) -> tuple[FolderRow, ...]:
    """The cursors, by mailbox and folder, with their newest mails."""
    find = sa.select(cursor, _LIVE).order_by(cursor.c.mailbox, cursor.c.folder).limit(FOLDER_LIMIT)
    cursors = [_cursor(dict(row)) for row in (await connection.execute(find)).mappings()]
    newest = await _newest_mails(connection, cursors)
    return tuple(FolderRow(state, *newest.get(place, (None, None))) for place, state in enumerate(cursors))


async def _newest_mails(
    connection: AsyncConnection, cursors: Sequence[CursorState]
) -> dict[int, tuple[datetime | None, datetime | None]]:
    """When the newest mail of each folder landed and was received; found by the unique key, all in one statement.

    With the keys as values: joined to the cursors, MySQL would sort all rows of each folder.
    """
    parts = []
    for place, state in enumerate(cursors):
        newest = (
            sa.select(sa.literal(place).label("place"), message.c.landed_at, message.c.received_at)
            .where(
                message.c.mailbox == state.key.mailbox,
                message.c.folder == state.key.folder,
                message.c.uid_validity == state.uid_validity,
            )
            .order_by(message.c.uid.desc())
            .limit(1)
            .subquery(f"part_{place}")
        )
        parts.append(sa.select(newest))
    if not parts:
        return {}
    return {row.place: (row.landed_at, row.received_at) for row in await connection.execute(sa.union_all(*parts))}


def _cursor(fields: dict[str, Any]) -> CursorState:
    key = FolderKey(fields.pop("mailbox"), fields.pop("folder"))
    live = bool(fields.pop("lease_live"))
    return CursorState(key=key, cursor_id=fields.pop("id"), lease_live=live, **fields)


async def read_instances(connection: AsyncConnection) -> tuple[InstanceState, ...]:
    """The freshest instances; the table holds a row for each process, so it is short."""
    find = sa.select(instance, db_now().label("now")).order_by(instance.c.heartbeat_at.desc()).limit(INSTANCE_LIMIT)
    return tuple(
        InstanceState(
            instance=row.instance,
            role=row.role,
            started_at=row.started_at,
            heartbeat_at=row.heartbeat_at,
            age_seconds=max(0.0, (row.now - row.heartbeat_at).total_seconds()),
            detail=row.detail,
        )
        for row in await connection.execute(find)
    )


async def read_set_aside(connection: AsyncConnection) -> tuple[MailLine, ...]:
    """The newest mails that no further attempt is made for.

    `next_attempt_at` is NULL in these rows and stands in the order only to let the index on (status, next_attempt_at),
    which ends in the primary key, serve it.
    """
    lines: list[MailLine] = []
    for status in SET_ASIDE:
        find = (
            _lines()
            .where(message.c.status == status.value)
            .order_by(message.c.next_attempt_at.desc(), message.c.id.desc())
            .limit(LIST_LIMIT)
        )
        lines += [_line(row) for row in await connection.execute(find)]
    lines.sort(key=lambda line: line.message_pk, reverse=True)
    return tuple(lines[:LIST_LIMIT])


async def read_latest(connection: AsyncConnection) -> tuple[MailLine, ...]:
    """The mails that landed last; by the primary key."""
    find = _lines().order_by(message.c.id.desc()).limit(LIST_LIMIT)
    return tuple(_line(row) for row in await connection.execute(find))


def _lines() -> sa.Select[Any]:
    return sa.select(
        message.c.id,
        message.c.mailbox,
        message.c.folder,
        message.c.uid,
        message.c.status,
        message.c.attempts,
        sa.func.substr(message.c.last_error, 1, ERROR_CHARS).label("error"),
        message.c.size_bytes,
        message.c.received_at,
        message.c.landed_at,
        message.c.updated_at,
        sa.func.substr(message.c.subject, 1, TEXT_CHARS).label("subject"),
        sa.func.substr(message.c.from_name, 1, TEXT_CHARS).label("from_name"),
        sa.func.substr(message.c.from_addr, 1, TEXT_CHARS).label("from_addr"),
    )


def _line(row: sa.Row[Any]) -> MailLine:
    return MailLine(
        message_pk=row.id,
        mailbox=row.mailbox,
        folder=row.folder,
        uid=row.uid,
        status=row.status,
        attempts=row.attempts,
        error=row.error,
        size_bytes=row.size_bytes,
        received_at=row.received_at,
        landed_at=row.landed_at,
        updated_at=row.updated_at,
        subject=row.subject or "",
        from_name=row.from_name or "",
        from_addr=row.from_addr or "",
    )
