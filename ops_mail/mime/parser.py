"""Bytes of a mail → its record. Pure: nothing is opened, fetched or awaited."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from ops_mail.core.mail import Address, Attachment, ParsedMail
from ops_mail.mime.addresses import read_addresses
from ops_mail.mime.attachments import read_attachments
from ops_mail.mime.bodies import choose
from ops_mail.mime.dates import read_date
from ops_mail.mime.defects import Defect
from ops_mail.mime.fields import HeaderBlock, read_fields
from ops_mail.mime.labels import codec_for
from ops_mail.mime.limits import ParseLimits
from ops_mail.mime.notes import Notes, OutOfTimeError
from ops_mail.mime.texts import read_texts
from ops_mail.mime.tree import Part, read_tree
from ops_mail.mime.words import decode_value

_DEFAULT_LIMITS = ParseLimits()


@dataclass(slots=True)
class _Draft:
    """The record as far as it is known; each step fills in its part, so that running out of time loses the rest."""

    message_id: str | None = None
    subject: str = ""
    sender: tuple[Address, ...] = ()
    to_addrs: tuple[Address, ...] = ()
    cc_addrs: tuple[Address, ...] = ()
    reply_to: str | None = None
    return_path: str | None = None
    auth_results: str | None = None
    sent_at: datetime | None = None
    text_body: str | None = None
    html_body: str | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)

    def record(self, defects: tuple[str, ...]) -> ParsedMail:
        first = next((address for address in self.sender if "@" in address.addr), None)
        first = first or (self.sender[0] if self.sender else Address("", ""))
        return ParsedMail(
            message_id=self.message_id,
            subject=self.subject,
            from_name=first.name,
            from_addr=first.addr,
            to_addrs=self.to_addrs,
            cc_addrs=self.cc_addrs,
            reply_to=self.reply_to,
            return_path=self.return_path,
            auth_results=self.auth_results,
            sent_at=self.sent_at,
            text_body=self.text_body,
            html_body=self.html_body,
            headers=tuple(self.headers),
            attachments=tuple(self.attachments),
            defects=defects,
        )


def parse_mail(raw: bytes, limits: ParseLimits = _DEFAULT_LIMITS) -> ParsedMail:
    """The record of a mail, as a good mail client shows it. Never raises, whatever the bytes; bounded by `limits`.

    Every shortfall is a code in `defects` (see `ops_mail.mime.defects`).
    """
    notes = Notes(limits)
    draft = _Draft()
    try:
        tree = read_tree(raw, notes)
        notes.hint = _declared_charset(tree)
        _read_header(tree.header, draft, notes)
        chosen = choose(tree, notes)
        wrapped = read_attachments(chosen.attachments, draft.attachments, notes)
        draft.text_body, draft.html_body = read_texts(chosen, wrapped, draft.attachments, notes)
    except OutOfTimeError:
        notes.expired = True
    except Exception:  # noqa: BLE001 - promise P4: a fault of the parser must not keep a mail from landing
        notes.add_last(Defect.PARSER_FAILED)
    if notes.expired:
        notes.add_last(Defect.TIME_LIMIT)
    return draft.record(notes.defects())


def parse_header_only(raw_header: bytes, limits: ParseLimits = _DEFAULT_LIMITS) -> ParsedMail:
    """The record of a mail of which only the header block is known (oversize): no texts, no attachments."""
    notes = Notes(limits)
    draft = _Draft()
    try:
        header = read_fields(raw_header, 0, len(raw_header), (), notes, top=True)
        _read_header(header, draft, notes)
    except OutOfTimeError:
        notes.add_last(Defect.TIME_LIMIT)
    except Exception:  # noqa: BLE001 - as above
        notes.add_last(Defect.PARSER_FAILED)
    return draft.record(notes.defects())


def _declared_charset(tree: Part) -> str | None:
    """The charset of the first text part: raw 8-bit headers are likely to be in the same one."""
    stack = [tree]
    for _ in range(20):
        if not stack:
            break
        part = stack.pop(0)
        label = part.parameters.plain("charset")
        codec = None if label is None else codec_for(label)
        if codec is not None and codec not in ("ascii", "utf_8"):
            return codec
        stack[:0] = part.children
    return None


def _read_header(header: HeaderBlock, draft: _Draft, notes: Notes) -> None:
    by_name: dict[str, list[bytes]] = {}
    texts: dict[str, list[str]] = {}
    for index, (name, value) in enumerate(header.fields):
        if index % 64 == 63:
            notes.check_time()
        text = decode_value(value, notes)
        draft.headers.append((name, text))
        by_name.setdefault(name.lower(), []).append(value)
        texts.setdefault(name.lower(), []).append(text)
    _note_repeated(by_name, notes)
    draft.subject = _text(texts, "subject") or ""
    draft.message_id = _identifier(_text(texts, "message-id"))
    draft.sender = _addresses(by_name, "from", notes)
    if not any(address.addr for address in draft.sender):
        notes.add(Defect.NO_FROM)
        draft.sender = _instead_of_from(draft.sender, by_name, notes)
    date = _text(texts, "date")
    if not date:
        notes.add(Defect.NO_DATE)
    else:
        draft.sent_at = read_date(date, notes)
    draft.return_path = _text(texts, "return-path")
    draft.reply_to = _text(texts, "reply-to")
    draft.auth_results = "\n".join(texts.get("authentication-results", ())) or None
    draft.to_addrs = _addresses(by_name, "to", notes)
    draft.cc_addrs = _addresses(by_name, "cc", notes)


def _instead_of_from(sender: tuple[Address, ...], by_name: dict[str, list[bytes]], notes: Notes) -> tuple[Address, ...]:
    """Without an address in From: that of Sender, else the one to answer to; a name that From does give is kept."""
    found = _addresses(by_name, "sender", notes) or _addresses(by_name, "reply-to", notes)
    if sender and sender[0].name and found:
        return (Address(sender[0].name, found[0].addr),)
    return found or sender


def _note_repeated(by_name: dict[str, list[bytes]], notes: Notes) -> None:
    for name in ("from", "to", "cc", "subject", "date", "message-id", "reply-to", "sender", "content-type"):
        if len(by_name.get(name, ())) > 1:
            notes.add(Defect.REPEATED_FIELD, name)


def _text(texts: dict[str, list[str]], name: str) -> str | None:
    """The first field of that name that says anything."""
    values = [value.strip() for value in texts.get(name, ())]
    return next((value for value in values if value), values[0] if values else None)


def _identifier(text: str | None) -> str | None:
    """A message id without its angle brackets."""
    if not text:
        return None
    begin, end = text.find("<"), text.find(">")
    inner = text[begin + 1 : end] if 0 <= begin < end else text.strip("<>")
    return inner.strip() or None


def _addresses(by_name: dict[str, list[bytes]], name: str, notes: Notes) -> tuple[Address, ...]:
    found: list[Address] = []
    for value in by_name.get(name, ()):
        limit = notes.limits.max_addresses - len(found)
        if limit <= 0:
            notes.add(Defect.ADDRESS_LIMIT)
            break
        found += read_addresses(value, notes, limit)
    return tuple(found)
