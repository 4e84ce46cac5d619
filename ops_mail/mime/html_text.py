"""HTML as readable text, for mails that have no plain part. One linear pass; nothing is rendered or fetched."""

from __future__ import annotations

import html
import re

from ops_mail.mime.defects import Defect
from ops_mail.mime.notes import Notes, OutOfTimeError

_NAME = re.compile(r"/?[A-Za-z][^\s/>]{0,30}")
_TAG_END = re.compile(r"(?:[^>\"']++|\"[^\"]*+\"|'[^']*+')*+>")
_COMMENT_END = re.compile(r"--!?>")
_SPACE = re.compile(r"[ \t\r\n\f]+")
_HIDDEN = re.compile(r"display\s{0,5}:\s{0,5}none", re.IGNORECASE)
_ALT = re.compile(r"\balt\s{0,5}=\s{0,5}(?:\"([^\"]{1,500})\"|'([^']{1,500})')", re.IGNORECASE)
_RAW = {
    name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "title", "textarea", "xmp", "noembed")
}
_VOID = frozenset(
    (
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    )
)
_PARAGRAPH = frozenset(
    (
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "dl",
        "pre",
        "blockquote",
        "table",
    )
)
_BLOCK = frozenset(
    (
        "div",
        "tr",
        "li",
        "dt",
        "dd",
        "section",
        "article",
        "header",
        "footer",
        "main",
        "nav",
        "aside",
        "address",
        "center",
        "form",
        "fieldset",
        "figure",
        "figcaption",
        "caption",
        "tbody",
        "thead",
        "tfoot",
        "body",
        "html",
        "hr",
        "option",
        "details",
        "summary",
    )
)
_BLANK_LINES = re.compile(r"\n{3,}")
_SPACED_BREAK = re.compile(r"(?<![ \t])[ \t]++\n")
# `html.unescape` raises on decimal numbers of more than 4,300 digits, and none of this length is a character.
_ENDLESS_REFERENCE = re.compile(r"&#(?:[0-9]{12,}+|[xX][0-9a-fA-F]{12,}+);?")


def html_to_text(source: str, notes: Notes) -> str:
    """The text that a reader sees; as far as it was read when the time is up or the HTML is over its limit."""
    if len(source) > notes.limits.max_html_chars:
        notes.add(Defect.TEXT_LIMIT)
        source = source[: notes.limits.max_html_chars]
    text = _read(source, notes, hide=True)
    return text or _read(source, notes, hide=False)


def _read(source: str, notes: Notes, *, hide: bool) -> str:
    writer = _Writer(hide)
    try:
        _tokens(source, writer, notes)
    except OutOfTimeError:
        notes.expired = True
    return writer.text()


def _tokens(source: str, writer: _Writer, notes: Notes) -> None:
    position = 0
    steps = 0
    quotes_close = True
    while True:
        opening = source.find("<", position)
        if opening < 0:
            writer.write(source[position:])
            return
        steps += 1
        if steps % 1024 == 0:
            notes.check_time()
        if opening > position:
            writer.write(source[position:opening])
        name = _NAME.match(source, opening + 1)
        if name is None:
            position = _markup(source, opening, writer)
            continue
        end = _TAG_END.match(source, name.end()) if quotes_close else None
        if end is not None:
            after = end.end()
        else:
            # No end outside of quotes up to the end of the text: from here on quotes mean nothing.
            quotes_close = False
            after = source.find(">", name.end()) + 1
            if after == 0:
                return  # a tag that was cut off
        position = after
        tag = name[0].lower()
        raw = _RAW.get(tag)
        if raw is not None:
            closing = raw.search(source, after)
            if tag in ("textarea", "xmp") and closing is not None:
                writer.write(source[after : closing.start()])
            position = len(source) if closing is None else closing.start()
        else:
            writer.tag(tag, source, name.end(), after)


def _markup(source: str, opening: int, writer: _Writer) -> int:
    """What follows a "<" that opens no tag: a comment, a declaration, or a plain character."""
    if source.startswith("<!--", opening):
        end = _COMMENT_END.search(source, opening + 4)
        if end is None:
            return len(source)
        return end.end()
    if source.startswith(("<!", "<?", "</"), opening):
        end_at = source.find(">", opening)
        return len(source) if end_at < 0 else end_at + 1
    writer.write("<")
    return opening + 1


class _Writer:
    """Collects text the way a browser lays it out: white space collapsed, blocks on lines of their own."""

    __slots__ = ("_breaks", "_bullet", "_hidden", "_hidden_depth", "_hide", "_pieces", "_pre", "_space")

    def __init__(self, hide: bool) -> None:
        self._pieces: list[str] = []
        self._breaks = 0  # line breaks due before the next text
        self._bullet = False  # just behind the mark of a list item: its text goes on the same line
        self._space = False  # a space due before the next text
        self._pre = 0
        self._hide = hide
        self._hidden: str | None = None  # the element whose content is not shown
        self._hidden_depth = 0

    def write(self, raw: str) -> None:
        if self._hidden is not None:
            return
        text = html.unescape(_ENDLESS_REFERENCE.sub("\ufffd", raw)) if "&" in raw else raw
        if self._pre:
            self._flush()
            self._pieces.append(text)
            return
        text = _SPACE.sub(" ", text)
        content = text.strip(" ")
        if not content:
            self._space = self._space or bool(text)
            return
        if text[0] == " ":
            self._space = True
        self._flush()
        self._pieces.append(content)
        self._space = text[-1] == " "

    def _flush(self) -> None:
        if self._breaks:
            if self._pieces and not self._bullet:
                self._pieces.append("\n" * self._breaks)
            self._breaks = 0
        elif self._space and self._pieces:
            self._pieces.append(" ")
        self._space = self._bullet = False

    def tag(self, tag: str, source: str, begin: int, end: int) -> None:
        name = tag.lstrip("/")
        opens = name == tag
        if self._hidden is not None:
            self._inside_hidden(name, opens)
            return
        if opens and self._hide and name not in _VOID and end - begin > 6 and _HIDDEN.search(source, begin, end - 1):
            self._hidden, self._hidden_depth = name, 1
            return
        if name == "br":
            self._line_break()
        elif name in _PARAGRAPH:
            self._breaks = max(self._breaks, 2)
            if name == "pre":
                self._pre = max(0, self._pre + (1 if opens else -1))
        elif name in _BLOCK:
            self._breaks = max(self._breaks, 1)
            if opens and name == "li":
                self._flush()
                self._pieces.append("- ")
                self._bullet = True
        elif name in ("td", "th") and opens:
            self._space = True
        elif name == "img":
            alt = _ALT.search(source, begin, end)
            if alt is not None:
                self.write(alt[1] or alt[2])

    def _line_break(self) -> None:
        if self._breaks:
            self._breaks += 1
        else:
            self._breaks = 1
        self._space = False

    def _inside_hidden(self, name: str, opens: bool) -> None:
        if name == self._hidden:
            self._hidden_depth += 1 if opens else -1
            if self._hidden_depth <= 0:
                self._hidden = None

    def text(self) -> str:
        joined = "".join(self._pieces).replace("\xa0", " ").replace("\r\n", "\n").replace("\r", "\n")
        return _BLANK_LINES.sub("\n\n", _SPACED_BREAK.sub("\n", joined)).strip()
