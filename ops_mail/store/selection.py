"""Which mails an operator means: by id, key, mailbox, status, age or error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from ops_mail.core.ids import FolderKey, UidValidity, stable_key
from ops_mail.core.mail import MessageStatus
from ops_mail.store.columns import db_now
from ops_mail.store.database import Database
from ops_mail.store.schema import message

PAGE = 200


@dataclass(frozen=True, slots=True)
class Selection:
    """All conditions hold together; an empty one means nothing. Ages in seconds since the row last changed.

    `names` are ids, or keys as handlers see them. `error` is a part of the last error, in any case.
    """

    names: tuple[str, ...] = ()
    mailbox: str | None = None
    statuses: tuple[MessageStatus, ...] = ()
    older_than: float | None = None
    newer_than: float | None = None
    error: str | None = None

    @property
    def narrowed(self) -> bool:
        """Whether anything but the status is asked for."""
        wishes = (self.mailbox, self.older_than, self.newer_than, self.error)
        return bool(self.names) or any(wish is not None for wish in wishes)

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """For a WHERE."""
        found: list[sa.ColumnElement[bool]] = []
        if self.names:
            found.append(sa.or_(*(_named(name) for name in self.names)))
        if self.mailbox is not None:
            found.append(message.c.mailbox == self.mailbox)
        if self.statuses:
            found.append(message.c.status.in_([status.value for status in self.statuses]))
        if self.older_than is not None:
            found.append(message.c.updated_at <= db_now(-self.older_than))
        if self.newer_than is not None:
            found.append(message.c.updated_at >= db_now(-self.newer_than))
        if self.error is not None:
            found.append(sa.func.lower(message.c.last_error).contains(self.error.lower(), autoescape=True))
        return found


@dataclass(frozen=True, slots=True)
class MailLine:
    """One mail in a list."""

    message_pk: int
    key: str
    mailbox: str
    status: MessageStatus
    subject: str
    from_addr: str
    received_at: datetime | None
    updated_at: datetime
    attempts: int
    size_bytes: int
    last_error: str | None


def _named(name: str) -> sa.ColumnElement[bool]:
    if name.isascii() and name.isdecimal():
        return message.c.id == int(name[:18])
    folder, _, rest = name.rpartition("/")
    folder, _, uid_validity = folder.rpartition("/")
    if not (rest.isascii() and rest.isdecimal() and uid_validity.lstrip("-").isdecimal()):
        return sa.false()
    # Mailbox and folder may hold slashes themselves: each way to cut the text is tried.
    cuts = [index for index, letter in enumerate(folder) if letter == "/"]
    places = [sa.and_(message.c.mailbox == folder[:cut], message.c.folder == folder[cut + 1 :]) for cut in cuts]
    numbers = (message.c.uid_validity == int(uid_validity[:18]), message.c.uid == int(rest[:18]))
    return sa.and_(sa.or_(sa.false(), *places), *numbers)


async def select_lines(database: Database, selection: Selection, limit: int | None) -> AsyncIterator[MailLine]:
    """The newest first, page by page, so that no number of mails is too many."""
    before: int | None = None
    left = limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        page = await _page(database, selection, before, size)
        for line in page:
            yield line
        if len(page) < size:
            return
        before = page[-1].message_pk
        left = None if left is None else left - len(page)


async def count_selected(database: Database, selection: Selection) -> int:
    """How many there are."""
    async with database.reading("counting mails") as connection:
        found = sa.select(sa.func.count()).select_from(message).where(*selection.conditions())
        return int((await connection.execute(found)).scalar_one())


async def _page(database: Database, selection: Selection, before: int | None, size: int) -> list[MailLine]:
    columns = (
        message.c.id, message.c.mailbox, message.c.folder, message.c.uid_validity, message.c.uid, message.c.status,
        message.c.subject, message.c.from_addr, message.c.received_at, message.c.updated_at, message.c.attempts,
        message.c.size_bytes, message.c.last_error,
    )  # fmt: skip
    find = sa.select(*columns).where(*selection.conditions()).order_by(message.c.id.desc()).limit(size)
    if before is not None:
        find = find.where(message.c.id < before)
    async with database.reading("listing mails") as connection:
        return [_line(row) for row in (await connection.execute(find)).mappings()]


def _line(row: sa.RowMapping) -> MailLine:
    return MailLine(
        message_pk=row["id"],
        key=stable_key(FolderKey(row["mailbox"], row["folder"]), UidValidity(row["uid_validity"]), row["uid"]),
        mailbox=row["mailbox"],
        status=MessageStatus(row["status"]),
        subject=row["subject"] or "",
        from_addr=row["from_addr"] or "",
        received_at=row["received_at"],
        updated_at=row["updated_at"],
        attempts=row["attempts"],
        size_bytes=row["size_bytes"],
        last_error=row["last_error"],
    )
