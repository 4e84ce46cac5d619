"""Mails as they are in the tables, for handlers and for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.ids import FolderKey, Uid, UidValidity, stable_key
from ops_mail.core.mail import Address, AttachmentRow, MessageStatus
from ops_mail.store.schema import attachment, message


@dataclass(frozen=True, slots=True)
class StoredMail:
    """One row of `ops_mail_message` with its attachments. Times are UTC and aware."""

    message_pk: int
    key: str
    folder_key: FolderKey
    uid_validity: UidValidity
    uid: Uid
    message_id: str | None
    subject: str
    sender: Address
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    reply_to: str | None
    return_path: str | None
    auth_results: str | None
    sent_at: datetime | None
    received_at: datetime | None
    landed_at: datetime
    size_bytes: int
    raw_sha256: str | None
    text: str | None
    html: str | None
    headers: tuple[tuple[str, str], ...]
    flags: tuple[str, ...]
    defects: tuple[str, ...]
    status: MessageStatus
    attempts: int
    last_error: str | None
    next_attempt_at: datetime | None
    content_removed_at: datetime | None
    attachments: tuple[AttachmentRow, ...]


async def load_mails(connection: AsyncConnection, ids: Sequence[int]) -> dict[int, StoredMail]:
    """The mails by id; one that is not there is left out."""
    attached: dict[int, list[AttachmentRow]] = defaultdict(list)
    files = sa.select(attachment).where(attachment.c.message_pk.in_(ids)).order_by(attachment.c.position)
    for row in await connection.execute(files):
        attached[row.message_pk].append(_attachment(row))
    rows = await connection.execute(sa.select(message).where(message.c.id.in_(ids)))
    return {row.id: _mail(row, tuple(attached[row.id])) for row in rows}


def _attachment(row: sa.Row[Any]) -> AttachmentRow:
    return AttachmentRow(
        position=row.position,
        filename=row.filename,
        original_filename=row.original_filename,
        content_type=row.content_type,
        disposition=row.disposition,
        content_id=row.content_id,
        size_bytes=row.size_bytes,
        sha256=row.sha256,
    )


def _mail(row: sa.Row[Any], attachments: tuple[AttachmentRow, ...]) -> StoredMail:
    key = FolderKey(row.mailbox, row.folder)
    return StoredMail(
        message_pk=row.id,
        key=stable_key(key, row.uid_validity, row.uid),
        folder_key=key,
        uid_validity=row.uid_validity,
        uid=row.uid,
        message_id=row.message_id,
        subject=row.subject or "",
        sender=Address(row.from_name or "", row.from_addr or ""),
        to=_addresses(row.to_addrs),
        cc=_addresses(row.cc_addrs),
        reply_to=row.reply_to,
        return_path=row.return_path,
        auth_results=row.auth_results,
        sent_at=row.sent_at,
        received_at=row.received_at,
        landed_at=row.landed_at,
        size_bytes=row.size_bytes,
        raw_sha256=row.raw_sha256,
        text=row.text_body,
        html=row.html_body,
        headers=tuple((name, value) for name, value in row.headers or ()),
        flags=tuple(row.flags or ()),
        defects=tuple(row.defects or ()),
        status=MessageStatus(row.status),
        attempts=row.attempts,
        last_error=row.last_error,
        next_attempt_at=row.next_attempt_at,
        content_removed_at=row.content_removed_at,
        attachments=attachments,
    )


def _addresses(value: Any) -> tuple[Address, ...]:
    return tuple(Address(one["name"], one["addr"]) for one in value or ())
