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
    (
        "text/calendar", "text/x-vcalendar", "text/vcard", "text/x-vcard", "text/directory", "text/css", "text/csv",
        "text/tab-separated-values", "text/xml", "text/rtf", "text/javascript", "text/rfc822-headers",
        "text/x-amp-html", "text/watch-html", "text/x-log",
    )
)  # fmt: skip


@dataclass(slots=True)
class Chosen:
    """Parts in the order of the mail. `texts` and `htmls` are the two readings of it; they share parts."""

    texts: list[Part] = field(default_factory=list)
    htmls: list[Part] = field(default_factory=list)
    attachments: list[Part] = field(default_factory=list)


def choose(root: Part, notes: Notes) -> Chosen:
    """Sort the parts of a tree. Recursion is bounded by the depth of the tree, which is limited."""
    chosen = Chosen()
    _Walk(chosen, notes, reads_text=True, reads_html=True, in_alternative=False).parts([root], "mixed")
    return chosen


def disposition_of(part: Part) -> Parameters | None:
    """The Content-Disposition; None when there is none."""
    header = part.header.first("content-disposition")
    return None if header is None else read_parameters(header)


def has_name(part: Part, disposition: Parameters | None) -> bool:
    """True when the sender gave the part a file name."""
    for parameters, name in ((disposition, "filename"), (part.parameters, "name")):
        if parameters is not None and any(key.startswith(name) and value for key, value in parameters.raw.items()):
            return True
    return False


@dataclass(slots=True)
class _Walk:
    """One level of the tree: which of the two readings its text parts may join."""

    chosen: Chosen
    notes: Notes
    reads_text: bool
    reads_html: bool
    in_alternative: bool

    def parts(self, parts: list[Part], kind: str, start: str | None = None) -> None:
        """All parts of one multipart/`kind`; `start` names the root of a related one (RFC 2387)."""
        texts, htmls = self.chosen.texts, self.chosen.htmls
        text_count, html_count = len(texts), len(htmls)
        for index, part in enumerate(_root_first(parts, start) if kind == "related" else parts):
            self.notes.check_time()
            if part.is_multipart and part.children:
                self._multipart(part)
            elif part.is_multipart and not part.body().strip():
                continue
            elif part.is_message:
                self._message(part)
            else:
                self._leaf(part, index, kind)
        if kind == "alternative" and self.reads_text and self.reads_html:
            # One reading only was offered: it serves as the other too.
            if text_count == len(texts):
                texts.extend(htmls[html_count:])
            elif html_count == len(htmls):
                htmls.extend(texts[text_count:])

    def _multipart(self, part: Part) -> None:
        kind = part.content_type.removeprefix("multipart/")
        in_alternative = self.in_alternative or kind == "alternative"
        inner = _Walk(self.chosen, self.notes, self.reads_text, self.reads_html, in_alternative)
        inner.parts(part.children, kind, part.parameters.plain("start"))

    def _leaf(self, part: Part, index: int, kind: str) -> None:
        disposition = disposition_of(part)
        if not _is_inline(part, disposition, index, kind):
            self.chosen.attachments.append(part)
            return
        is_html = part.content_type == "text/html"
        if kind != "alternative" and self.in_alternative:
            # In one branch of an alternative: its first text says for which reading the branch is meant.
            self.reads_text, self.reads_html = self.reads_text and not is_html, self.reads_html and is_html
        joins_text = self.reads_text and not (kind == "alternative" and is_html)
        joins_html = self.reads_html and not (kind == "alternative" and not is_html)
        if joins_text:
            self.chosen.texts.append(part)
        if joins_html:
            self.chosen.htmls.append(part)
        if not (joins_text or joins_html) or has_name(part, disposition):  # shown, and offered as a file too
            self.chosen.attachments.append(part)

    def _message(self, part: Part) -> None:
        self.chosen.attachments.append(part)
        inner = part.children[0] if part.children else None
        if inner is None and not is_identity(part.encoding):
            inner = read_encoded_message(part.content(self.notes), part.depth + 1, self.notes)
        if inner is None:
            return
        nested = choose(inner, self.notes)
        self.chosen.attachments += nested.attachments
        disposition = disposition_of(part)
        if disposition is None or disposition.value != "attachment":
            self.chosen.texts += nested.texts if self.reads_text else []
            self.chosen.htmls += nested.htmls if self.reads_html else []


def _root_first(parts: list[Part], start: str | None) -> list[Part]:
    """The part that the others belong to stands first, unless `start` names another or the first one is no text."""
    wanted = None if start is None else start.strip("<> ")
    for index, part in enumerate(parts):
        content_id = part.header.first("content-id")
        if wanted and content_id is not None and content_id.decode("latin_1").strip("<> ") == wanted:
            return [part, *parts[:index], *parts[index + 1 :]]
    if parts[0].content_type.startswith(("text/", "multipart/")):
        return parts
    roots = [part for part in parts if part.content_type in ("text/html", "multipart/alternative")]
    return parts if not roots else [roots[0], *(part for part in parts if part is not roots[0])]


def _is_inline(part: Part, disposition: Parameters | None, index: int, kind: str) -> bool:
    if disposition is not None and disposition.value == "attachment":
        return False
    if part.content_type in _SHOWN:
        return index == 0 or (kind != "related" and not has_name(part, disposition))
    if part.content_type in _DATA or not part.content_type.startswith("text/"):
        return False
    return kind != "alternative" and not has_name(part, disposition)
