"""Mails whose stored bytes are parsed again: which they are, what a new parse changes, and writing that down.

Only what is derived from the bytes is ever written: the columns of `DERIVED`, the rows of `ops_mail_attachment` and
their content, and `updated_at`. A quarantined mail that parses now becomes `landed`; no other status is touched, so it
does not matter whether a handler has the mail in its hands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.audit_action import AuditAction
from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import Listed, MessageStatus, PreparedMail
from ops_mail.store.audit import add_audit
from ops_mail.store.bodies import write_bodies
from ops_mail.store.columns import db_now
from ops_mail.store.edge import LANDING_SECONDS
from ops_mail.store.inserts import insert_many
from ops_mail.store.rows import MailRow, RowLimits, attachment_rows, mail_row
from ops_mail.store.schema import attachment, message
from ops_mail.store.store import Store

DERIVED = (
    *("message_id", "subject", "from_name", "from_addr", "to_addrs", "cc_addrs", "reply_to", "return_path"),
    *("auth_results", "sent_at", "text_body", "html_body", "headers", "defects"),
)
_HEAD = (
    *(message.c.id, message.c.mailbox, message.c.folder, message.c.uid_validity, message.c.uid),
    *(message.c.size_bytes, message.c.received_at, message.c.flags, message.c.status),
    *(message.c.raw_sha256, message.c.content_removed_at),
)
_STORED = tuple(
    message.c[name] for name in (*DERIVED, "id", "status", "last_error", "raw_sha256", "content_removed_at")
)
_FILE = tuple(column for column in attachment.c if column.name != "id")
_NO_MOMENT = datetime.min.replace(tzinfo=UTC)  # what landing could not store as received_at is noted as it was then
_KEPT_NOTES = ("truncated:flags", "surrogate:flags")  # of landing: about a column that is not derived
_FILE_BYTES = 1024


class Written(Enum):
    """What became of a new parse."""

    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"  # the bytes were removed, or the row, since they were read


@dataclass(frozen=True, slots=True)
class Candidate:
    """A mail as far as parsing it again needs it. `raw_sha256` None: its bytes are not there (any more)."""

    message_pk: int
    key: FolderKey
    uid_validity: UidValidity
    listed: Listed
    raw_sha256: str | None
    oversize: bool


class ReparseStore:
    """Each call is bounded in time and raises a StoreError, as those of `Store`. `by` is who asked, for the audit."""

    def __init__(self, store: Store, by: str) -> None:
        self._database = store.database
        self._blobs = store.blobs
        self._by = by

    async def last_id(self) -> int:
        """The id of the latest mail; 0 without any."""
        async with self._database.reading("looking for mails") as connection:
            return (await connection.execute(sa.select(sa.func.max(message.c.id)))).scalar_one_or_none() or 0

    async def mailboxes(self) -> tuple[str, ...]:
        """The mailboxes that have mails."""
        async with self._database.reading("looking for mailboxes") as connection:
            names = await connection.execute(sa.select(message.c.mailbox).distinct().order_by(message.c.mailbox))
            return tuple(names.scalars())

    async def page(self, after: int, until: int, mailbox: str | None, limit: int) -> list[Candidate]:
        """The next mails by ascending id, `until` included; of one mailbox if it is named."""
        mine = () if mailbox is None else (message.c.mailbox == mailbox,)
        find = sa.select(*_HEAD).where(message.c.id > after, message.c.id <= until, *mine)
        find = find.order_by(message.c.id).limit(limit)
        # By any other index each page would sort all mails of the mailbox.
        for server in ("mysql", "mariadb"):
            find = find.with_hint(message, "FORCE INDEX (PRIMARY)", server)
        async with self._database.reading("reading mails") as connection:
            return [_candidate(row) for row in (await connection.execute(find)).mappings()]

    def content(self, sha256: str) -> AsyncIterator[bytes]:
        """As BlobStore.open."""
        return self._blobs.open(sha256)

    async def has_bytes(self, mail: Candidate) -> bool:
        """Whether the mail's bytes are still meant to be there."""
        find = sa.select(message.c.raw_sha256, message.c.content_removed_at).where(message.c.id == mail.message_pk)
        async with self._database.reading("reading a mail") as connection:
            return _is_readable((await connection.execute(find)).mappings().one_or_none(), mail)

    async def differing(self, mails: Sequence[tuple[Candidate, PreparedMail]]) -> list[tuple[Candidate, PreparedMail]]:
        """Those to be written: their rows differ, or they have attachments, whose content may be missing."""
        ids = [mail.message_pk for mail, _ in mails]
        async with self._database.reading("comparing mails", LANDING_SECONDS) as connection:
            limits = await self._database.row_limits(connection)
            find = sa.select(*_STORED).where(message.c.id.in_(ids))
            rows = {row["id"]: row for row in (await connection.execute(find)).mappings()}
            with_files = sa.select(attachment.c.message_pk).where(attachment.c.message_pk.in_(ids)).distinct()
            filed = set((await connection.execute(with_files)).scalars())

        def differs(mail: Candidate, prepared: PreparedMail) -> bool:
            row = rows.get(mail.message_pk)
            if row is None or prepared.attachments or mail.message_pk in filed:
                return True
            return bool(_changes(row, _new_row(mail, prepared, limits, row), prepared))

        return [one for one in mails if differs(*one)]

    async def write(self, mails: Sequence[tuple[Candidate, PreparedMail]]) -> list[Written]:
        """Makes their rows, all or nothing, those that they would land as. Repeatable. Raises StoreRefused for all."""

        async def work(connection: AsyncConnection) -> list[Written]:
            limits = await self._database.row_limits(connection)
            # Content first, so that no mail's row is locked while large attachments are written.
            await self._blobs.put(connection, [blob for _, prepared in mails for blob in prepared.blobs[1:]])
            return await _rewrite(connection, limits, mails, self._by)

        return await self._database.writing("writing mails anew", work, LANDING_SECONDS)


def _candidate(row: sa.RowMapping) -> Candidate:
    moment = row["received_at"] or _NO_MOMENT
    return Candidate(
        message_pk=row["id"],
        key=FolderKey(row["mailbox"], row["folder"]),
        uid_validity=UidValidity(row["uid_validity"]),
        listed=Listed(Uid(row["uid"]), row["size_bytes"], moment, tuple(row["flags"] or ())),
        raw_sha256=row["raw_sha256"] if row["content_removed_at"] is None else None,
        oversize=row["status"] == MessageStatus.OVERSIZE.value,
    )


async def _rewrite(
    connection: AsyncConnection, limits: RowLimits, mails: Sequence[tuple[Candidate, PreparedMail]], by: str
) -> list[Written]:
    ids = [mail.message_pk for mail, _ in mails]
    find = sa.select(*_STORED).where(message.c.id.in_(ids)).order_by(message.c.id).with_for_update()
    rows = {row["id"]: row for row in (await connection.execute(find)).mappings()}
    old_files = await _files(connection, ids)
    moved: list[int] = []
    new_files: list[dict[str, Any]] = []
    written: list[Written] = []
    for mail, prepared in mails:
        row = rows.get(mail.message_pk)
        if row is None or not _is_readable(row, mail):
            written.append(Written.GONE)
            continue
        new = _new_row(mail, prepared, limits, row)
        changes = _changes(row, new, prepared)
        files = attachment_rows(mail.message_pk, prepared.attachments)
        if files != old_files[mail.message_pk]:
            moved.append(mail.message_pk)
            new_files += files
        elif not changes:
            written.append(Written.SAME)
            continue
        await _update(connection, mail, changes, new.rest)
        if "status" in changes:
            error = (row["last_error"] or "").split("\n", 1)[0][:300]
            detail = {"by": by, "was": row["status"], "error": error}
            await add_audit(connection, "operator", AuditAction.RELEASED, mail.key.mailbox, mail.message_pk, detail)
        written.append(Written.CHANGED)
    if moved:
        await connection.execute(sa.delete(attachment).where(attachment.c.message_pk.in_(moved)))
        await insert_many(connection, attachment, new_files, lambda _: _FILE_BYTES)
    return written


async def _update(
    connection: AsyncConnection, mail: Candidate, changes: dict[str, Any], pieces: dict[str, list[str]]
) -> None:
    rest = {name: some for name, some in pieces.items() if name in changes}
    values = {name: value for name, value in changes.items() if name not in rest}
    this = sa.update(message).where(message.c.id == mail.message_pk)
    await connection.execute(this.values(**values, updated_at=db_now()))
    if rest:
        await write_bodies(connection, mail.message_pk, rest)


def _new_row(mail: Candidate, prepared: PreparedMail, limits: RowLimits, row: sa.RowMapping) -> MailRow:
    """The row as it would land now, with what landing had to note about the columns that stay."""
    new = mail_row(mail.key, mail.uid_validity, prepared, limits, _NO_MOMENT)
    kept = [note for note in row["defects"] or () if note in _KEPT_NOTES and note not in new.values["defects"]]
    return MailRow({**new.values, "defects": [*new.values["defects"], *kept]}, new.rest)


def _changes(row: sa.RowMapping, new: MailRow, prepared: PreparedMail) -> dict[str, Any]:
    """The derived columns that differ, with their new values; and the status of a mail that is quarantined no more."""
    wanted = {name: "".join(new.rest[name]) if name in new.rest else new.values[name] for name in DERIVED}
    changes = {name: value for name, value in wanted.items() if row[name] != value}
    if row["status"] == MessageStatus.QUARANTINED.value and prepared.status is MessageStatus.LANDED:
        changes |= {"status": MessageStatus.LANDED.value, "last_error": None}
    return changes


async def _files(connection: AsyncConnection, ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """The attachments of each mail in their order."""
    find = sa.select(*_FILE).where(attachment.c.message_pk.in_(ids)).order_by(attachment.c.position)
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in (await connection.execute(find)).mappings():
        found[row["message_pk"]].append(dict(row))
    return found


def _is_readable(row: sa.RowMapping | None, mail: Candidate) -> bool:
    return row is not None and row["raw_sha256"] == mail.raw_sha256 and row["content_removed_at"] is None
