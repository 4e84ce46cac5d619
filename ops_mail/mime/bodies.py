"""Which parts are the text that a reader sees, and which are attachments.

The rules are those of JMAP (RFC 8621 section 4.1.4), which describe what mail clients do, with additions that desktop
clients make: a forwarded message is an attachment *and*, unless it is marked as one, its text is shown below; a text
that is shown and has a file name is an attachment too; other text types without a file name are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ops_mail.mime.notes import Notes
from ops_mail.mime.parameters import Parameters, read_parameters
from ops_mail.mime.transfer import is_identity
from ops_mail.mime.tree import Part, read_encoded_message

_SHOWN = frozenset(("text/plain", "text/html"))
# Text types that are data for programs: never shown as the text of a mail.
_DATA = frozenset(
    "text/calendar text/vcard text/x-vcard text/directory text/css text/csv text/xml text/rtf text/javascript "
    "text/rfc822-headers text/x-amp-html text/watch-html text/x-vcalendar text/tab-separated-values text/x-log".split()
)


@dataclass(slots=True)
class Chosen:
    """Parts in the order of the mail. `texts` and `htmls` are the two readings of it; they share parts."""

    texts: list[Part] = field(default_factory=list)
    htmls: list[Part] = field(default_factory=list)
    attachments: list[Part] = field(default_factory=list)


def choose(root: Part, notes: Notes) -> Chosen:
    """Sort the parts of a tree. Recursion is bounded by the depth of the tree, which is limited."""
    chosen = Chosen()
    _walk([root], "mixed", False, chosen, chosen.texts, chosen.htmls, notes)
    return chosen


def disposition_of(part: Part) -> Parameters | None:
    header = part.header.first("content-disposition")
    return None if header is None else read_parameters(header)


def has_name(part: Part, disposition: Parameters | None) -> bool:
    return any(key.startswith("filename") for key in (disposition.raw if disposition else ())) or any(
        key.startswith("name") for key in part.parameters.raw
    )


def _walk(
    parts: list[Part],
    kind: str,
    in_alternative: bool,
    chosen: Chosen,
    texts: list[Part] | None,
    htmls: list[Part] | None,
    notes: Notes,
) -> None:
    text_count = len(texts) if texts is not None else -1
    html_count = len(htmls) if htmls is not None else -1
    for index, part in enumerate(parts):
        notes.check_time()
        if part.is_multipart and part.children:
            subtype = part.content_type.removeprefix("multipart/")
            _walk(part.children, subtype, in_alternative or subtype == "alternative", chosen, texts, htmls, notes)
            continue
        disposition = disposition_of(part)
        if part.is_multipart and not part.body().strip():
            continue
        if part.is_message:
            _message(part, disposition, chosen, texts, htmls, notes)
            continue
        if not _is_inline(part, disposition, index, kind):
            chosen.attachments.append(part)
            continue
        if has_name(part, disposition):  # shown, and offered as a file, as desktop clients do
            chosen.attachments.append(part)
        if kind == "alternative":
            if part.content_type == "text/html" and htmls is not None:
                htmls.append(part)
            elif part.content_type != "text/html" and texts is not None:
                texts.append(part)
            else:
                chosen.attachments.append(part)
            continue
        if in_alternative:
            # Inside one branch of an alternative: plain text ends the HTML reading and the other way round.
            if part.content_type == "text/html":
                texts = None
            else:
                htmls = None
        if texts is not None:
            texts.append(part)
        if htmls is not None:
            htmls.append(part)
        if texts is None and htmls is None:
            chosen.attachments.append(part)
    if kind == "alternative" and texts is not None and htmls is not None:
        # One reading only was offered: it serves as the other too.
        if text_count == len(texts) and html_count != len(htmls):
            texts.extend(htmls[html_count:])
        elif html_count == len(htmls) and text_count != len(texts):
            htmls.extend(texts[text_count:])


def _is_inline(part: Part, disposition: Parameters | None, index: int, kind: str) -> bool:
    if disposition is not None and disposition.value == "attachment":
        return False
    if part.content_type in _SHOWN:
        return index == 0 or (kind != "related" and not has_name(part, disposition))
    if part.content_type in _DATA or not part.content_type.startswith("text/"):
        return False
    return kind != "alternative" and not has_name(part, disposition)


def _message(
    part: Part,
    disposition: Parameters | None,
    chosen: Chosen,
    texts: list[Part] | None,
    htmls: list[Part] | None,
    notes: Notes,
) -> None:
    chosen.attachments.append(part)
    inner = part.children[0] if part.children else None
    if inner is None and not is_identity(part.encoding):
        inner = read_encoded_message(part.content(notes), part.depth + 1, notes)
    if inner is None:
        return
    if disposition is not None and disposition.value == "attachment":
        texts = htmls = None
    nested = Chosen()
    _walk([inner], "mixed", False, nested, nested.texts, nested.htmls, notes)
    chosen.attachments += nested.attachments
    if texts is not None:
        texts += nested.texts
    if htmls is not None:
        htmls += nested.htmls
