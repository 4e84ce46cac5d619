"""Bytes to record, pure: no clock, no I/O."""

from __future__ import annotations

import email
import email.policy
from datetime import UTC, datetime
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

from ops_mail.core.mail import Address, Attachment, ParsedMail
from ops_mail.mime.defects import Defect
from ops_mail.mime.limits import ParseLimits

_FALLBACK = "utf-8"


def parse_mail(raw: bytes, limits: ParseLimits = ParseLimits()) -> ParsedMail:
    """The record of a mail; never raises, whatever the bytes."""
    del limits
    try:
        return _record(email.message_from_bytes(raw, policy=email.policy.compat32))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ParsedMail(defects=(Defect.PARSER_FAILED,))


def parse_header_only(raw_header: bytes) -> ParsedMail:
    """The record of a mail of which only the header block is known (oversize)."""
    return parse_mail(raw_header)


def _record(message: Message) -> ParsedMail:
    defects: list[str] = []
    text: str | None = None
    html: str | None = None
    attachments: list[Attachment] = []
    for part in message.walk():
        if part.is_multipart():
            continue
        content = part.get_payload(decode=True)
        content = content if isinstance(content, bytes) else b""
        kind, disposition = part.get_content_type(), part.get_content_disposition()
        name = part.get_filename()
        name = None if name is None else _decoded(name)
        if disposition != "attachment" and name is None and kind == "text/plain" and text is None:
            text = _text(content, part)
        elif disposition != "attachment" and name is None and kind == "text/html" and html is None:
            html = _text(content, part)
        else:
            base = None if name is None else name.replace("\\", "/").rsplit("/", 1)[-1]
            attachments.append(Attachment(base, name, kind, disposition, part.get("Content-ID"), content))
    headers = tuple((name, _decoded(value)) for name, value in message.items())
    sender = _addresses(message, "From")
    return ParsedMail(
        message_id=_first(headers, "message-id"),
        subject=_first(headers, "subject") or "",
        from_name=sender[0].name if sender else "",
        from_addr=sender[0].addr if sender else "",
        to_addrs=_addresses(message, "To"),
        cc_addrs=_addresses(message, "Cc"),
        reply_to=_first(headers, "reply-to"),
        return_path=_first(headers, "return-path"),
        auth_results=_first(headers, "authentication-results"),
        sent_at=_date(_first(headers, "date"), defects),
        text_body=text,
        html_body=html,
        headers=headers,
        attachments=tuple(attachments),
        defects=tuple(defects),
    )


def _decoded(value: object) -> str:
    parts: list[str] = []
    for piece, charset in decode_header(str(value)):
        parts.append(piece if isinstance(piece, str) else _lenient(piece, charset))
    return "".join(parts).encode("utf-8", "replace").decode("utf-8", "replace")


def _lenient(content: bytes, charset: str | None) -> str:
    try:
        return content.decode(charset or _FALLBACK, "replace")
    except LookupError:
        return content.decode(_FALLBACK, "replace")


def _text(content: bytes, part: Message) -> str:
    charset = part.get_content_charset()
    return _lenient(content, charset).encode("utf-8", "replace").decode("utf-8")


def _first(headers: tuple[tuple[str, str], ...], name: str) -> str | None:
    return next((value for key, value in headers if key.lower() == name), None)


def _addresses(message: Message, name: str) -> tuple[Address, ...]:
    pairs = getaddresses([str(value) for value in message.get_all(name, [])])
    return tuple(Address(_decoded(display), addr) for display, addr in pairs)


def _date(value: str | None, defects: list[str]) -> datetime | None:
    if value is None:
        return None
    try:
        when = parsedate_to_datetime(value)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, TypeError):
        defects.append(Defect.BAD_DATE)
        return None
