"""From a prepared mail to the values of its rows, each made to fit its column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ops_mail.core.ids import FolderKey, UidValidity
from ops_mail.core.mail import Address, AttachmentRow, PreparedMail
from ops_mail.core.textfit import cut_bytes, fit, fit_json, fit_time, note, scrub

TEXT_BYTES = 65_535  # a TEXT column
ERROR_CHARS = 4_000
JSON_BYTES = 1024 * 1024
DEFECTS = 200
MEDIUM_BYTES = 16 * 1024 * 1024 - 1  # a MEDIUMTEXT column
PIECE_CHARS = 128 * 1024


@dataclass(frozen=True, slots=True)
class RowLimits:
    """How large a row may be. The defaults are those of a database without a packet limit.

    `body_bytes`: text and HTML together; beyond the packet limit a row could be neither written nor read.
    `json_bytes`: each JSON column. `piece_chars`: how much of a body is in the INSERT; the rest follows in pieces,
    because a driver turns each statement into text on the event loop. None = all of it.
    """

    body_bytes: int = MEDIUM_BYTES
    json_bytes: int = JSON_BYTES
    piece_chars: int | None = None

    @classmethod
    def for_packet(cls, max_allowed_packet: int) -> RowLimits:
        """A quarter of the packet, at most 4 MiB, is left to the columns besides the bodies.

        In the INSERT long values take twice their bytes (hex digits) and a character up to four bytes.
        """
        spare = min(max_allowed_packet // 4, 4 * 1024 * 1024)
        return cls(
            body_bytes=min(MEDIUM_BYTES, max_allowed_packet - spare),
            json_bytes=min(JSON_BYTES, max_allowed_packet // 20),
            piece_chars=min(PIECE_CHARS, max_allowed_packet // 64),
        )


@dataclass(frozen=True, slots=True)
class MailRow:
    """`values` for `ops_mail_message`; `rest` the pieces of the long bodies that are not among them."""

    values: dict[str, Any]
    rest: dict[str, list[str]]


def mail_row(
    key: FolderKey,
    uid_validity: UidValidity,
    prepared: PreparedMail,
    limits: RowLimits,
    now: datetime,
    *,
    action_due: bool = False,
) -> MailRow:
    """The row of one mail; `now` is the database's time. `action_due`: an after-action is to follow."""
    mail, listed = prepared.mail, prepared.listed
    notes = [scrub(defect) for defect in mail.defects[:DEFECTS]]
    if len(mail.defects) > DEFECTS:
        note(notes, "truncated:defects")
    text, html = _bodies(mail.text_body, mail.html_body, limits, notes)
    rest: dict[str, list[str]] = {}
    values = {
        "mailbox": key.mailbox,
        "folder": key.folder,
        "uid_validity": uid_validity,
        "uid": listed.uid,
        "message_id": fit(mail.message_id, "message_id", notes, max_chars=998),
        "subject": fit(mail.subject, "subject", notes, max_bytes=TEXT_BYTES),
        "from_name": fit(mail.from_name, "from_name", notes, max_chars=512),
        "from_addr": fit(mail.from_addr, "from_addr", notes, max_chars=512),
        "to_addrs": _addresses(mail.to_addrs, "to_addrs", notes, limits),
        "cc_addrs": _addresses(mail.cc_addrs, "cc_addrs", notes, limits),
        "reply_to": fit(mail.reply_to, "reply_to", notes, max_chars=998),
        "return_path": fit(mail.return_path, "return_path", notes, max_chars=512),
        "auth_results": fit(mail.auth_results, "auth_results", notes, max_bytes=TEXT_BYTES),
        "sent_at": fit_time(mail.sent_at, "sent_at", notes),
        "received_at": fit_time(listed.internal_date, "received_at", notes),
        "size_bytes": listed.size_bytes,
        "raw_sha256": prepared.raw_sha256,
        "text_body": _first_piece(text, "text_body", rest, limits),
        "html_body": _first_piece(html, "html_body", rest, limits),
        "headers": fit_json([list(pair) for pair in mail.headers], "headers", notes, max_bytes=limits.json_bytes),
        "flags": fit_json(listed.flags, "flags", notes, max_bytes=TEXT_BYTES),
        "status": prepared.status.value,
        "attempts": 0,
        "last_error": fit(prepared.error, "last_error", notes, max_chars=ERROR_CHARS),
        "after_action_at": None if action_due else now,
        "landed_at": now,
        "updated_at": now,
    }
    _note_attachments(prepared.attachments, notes)
    values["defects"] = [cut_bytes(one, 1000) for one in notes]
    return MailRow(values, rest)


def attachment_rows(message_pk: int, rows: Sequence[AttachmentRow]) -> list[dict[str, Any]]:
    """The rows of a mail's attachments. What is cut here is cut from names alone; the content is the blob."""
    ignored: list[str] = []
    return [
        {
            "message_pk": message_pk,
            "position": row.position,
            "filename": fit(row.filename, "filename", ignored, max_chars=255),
            "original_filename": fit(row.original_filename, "original_filename", ignored, max_chars=1000),
            "content_type": fit(row.content_type, "content_type", ignored, max_chars=255),
            "disposition": fit(row.disposition, "disposition", ignored, max_chars=64),
            "content_id": fit(row.content_id, "content_id", ignored, max_chars=998),
            "size_bytes": row.size_bytes,
            "sha256": row.sha256,
        }
        for row in rows
    ]


def _note_attachments(rows: Sequence[AttachmentRow], defects: list[str]) -> None:
    """Notes on the mail what `attachment_rows` will have to change."""
    for row in rows:
        fit(row.filename, "attachment.filename", defects, max_chars=255)
        fit(row.original_filename, "attachment.original_filename", defects, max_chars=1000)
        fit(row.content_type, "attachment.content_type", defects, max_chars=255)
        fit(row.disposition, "attachment.disposition", defects, max_chars=64)
        fit(row.content_id, "attachment.content_id", defects, max_chars=998)


def _addresses(addresses: Sequence[Address], column: str, notes: list[str], limits: RowLimits) -> list[Any]:
    return list(
        fit_json(
            [{"name": one.name, "addr": one.addr} for one in addresses], column, notes, max_bytes=limits.json_bytes
        )
    )


def _bodies(text: str | None, html: str | None, limits: RowLimits, notes: list[str]) -> tuple[str | None, str | None]:
    """Both bodies within the limit: each may use what the other leaves, and half of it in any case."""
    text, html = fit(text, "text_body", notes), fit(html, "html_body", notes)
    text_size, html_size = (len(one.encode()) if one else 0 for one in (text, html))
    if text_size + html_size <= limits.body_bytes:
        return text, html
    half = limits.body_bytes // 2
    text_room = max(half, limits.body_bytes - html_size)
    html_room = limits.body_bytes - min(text_size, text_room)
    return _cut(text, text_room, "text_body", notes), _cut(html, html_room, "html_body", notes)


def _cut(text: str | None, room: int, column: str, notes: list[str]) -> str | None:
    if text is None:
        return None
    short = cut_bytes(text, room)
    if len(short) != len(text):
        note(notes, f"truncated:{column}")
    return short


def _first_piece(text: str | None, column: str, rest: dict[str, list[str]], limits: RowLimits) -> str | None:
    size = limits.piece_chars
    if text is None or size is None or len(text) <= size:
        return text
    rest[column] = [text[at : at + size] for at in range(0, len(text), size)]
    return None
