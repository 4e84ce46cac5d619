"""The chosen text parts → `text_body` and `html_body`."""

from __future__ import annotations

import re

from ops_mail.core.mail import Attachment
from ops_mail.mime.attachments import embedded_attachment
from ops_mail.mime.bodies import Chosen
from ops_mail.mime.charsets import decode_text, without_nul, without_surrogates
from ops_mail.mime.defects import Defect
from ops_mail.mime.embedded import split_embedded
from ops_mail.mime.flowed import unflow
from ops_mail.mime.html_text import html_to_text
from ops_mail.mime.labels import ASCII, codec_for
from ops_mail.mime.notes import Notes
from ops_mail.mime.tnef import Tnef
from ops_mail.mime.tree import Part

_META = re.compile(rb"<meta[^>]{0,300}?charset\s{0,5}=\s{0,5}[\"']?\s{0,5}([A-Za-z0-9_:.-]{2,40})", re.IGNORECASE)
_XML = re.compile(rb"\s{0,20}<\?xml[^>]{0,100}?encoding\s{0,5}=\s{0,5}[\"']([A-Za-z0-9_:.-]{2,40})", re.IGNORECASE)
_META_WITHIN = 4096
_MARKUP = frozenset(("text/html", "text/enriched", "text/richtext"))
_ENRICHED_PARAM = re.compile(r"<param>[^<]*</param>", re.IGNORECASE)
_ENRICHED_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]{0,60}>")


def read_texts(
    chosen: Chosen, wrapped: Tnef | None, attachments: list[Attachment], notes: Notes
) -> tuple[str | None, str | None]:
    """(text, html): parts shown one below the other; a text ends with a line break.

    Files that stand in a text are added to `attachments`. `wrapped` is the text of a winmail.dat, shown when there is
    no other.
    """
    htmls = {id(part): _html(part, notes) for part in chosen.htmls if part.content_type == "text/html"}
    html = _limited("\n".join(htmls.values()), notes) if htmls else None
    pieces: list[str] = []
    for part in chosen.texts:
        notes.check_time()
        if part.content_type == "text/html":
            source = htmls.get(id(part))
            pieces.append(html_to_text(_html(part, notes) if source is None else source, notes))
        else:
            pieces.append(_plain(part, attachments, notes))
    if wrapped is not None and not _shown(pieces):
        pieces = [] if wrapped.text is None else [wrapped.text.replace("\r\n", "\n")]
        if html is None and wrapped.html is not None:
            html = _limited(decode_text(wrapped.html, _declared(wrapped.html), notes), notes)
    if html and not _shown(pieces):  # an empty plain part beside the real one
        pieces = [html_to_text(html, notes)]
    text = "\n".join(piece.removesuffix("\n") + "\n" for piece in pieces if piece.strip("\r\n")) if pieces else None
    return None if text is None else _limited(text, notes), html


def _shown(pieces: list[str]) -> bool:
    return any(piece.strip() for piece in pieces)


def _limited(text: str, notes: Notes) -> str:
    if len(text) > notes.limits.max_text_chars:
        notes.add(Defect.TEXT_LIMIT)
        text = text[: notes.limits.max_text_chars]
    return without_nul(without_surrogates(text, notes), notes)


def _html(part: Part, notes: Notes) -> str:
    content = part.content(notes)
    label = part.parameters.plain("charset")
    if label is None or codec_for(label) in (None, ASCII):  # us-ascii is what gateways write when they know nothing
        label = _declared(content) or label
    return decode_text(content, label, notes, hint=notes.hint)


def _declared(content: bytes) -> str | None:
    """What the HTML itself says about its charset."""
    head = content[:_META_WITHIN]
    match = _META.search(head) or _XML.match(head)
    return None if match is None else match[1].decode("ascii")


def _plain(part: Part, attachments: list[Attachment], notes: Notes) -> str:
    content, files = split_embedded(part.content(notes), notes)
    attachments.extend(embedded_attachment(file, notes) for file in files)
    text = decode_text(content, part.parameters.plain("charset"), notes, hint=notes.hint)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if (part.parameters.plain("format") or "").lower() == "flowed":
        text = unflow(text, del_sp=(part.parameters.plain("delsp") or "").lower() == "yes")
    if part.content_type in _MARKUP:
        text = _ENRICHED_TAG.sub("", _ENRICHED_PARAM.sub("", text))
    return text
