"""The MIME tree of a mail, found in one pass over its delimiter lines.

The bytes are never copied: parts are ranges. Each line that begins with "--" is looked up once among the boundaries
that are open, so the work does not grow with the depth, and a part that is not closed ends where its parent goes on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ops_mail.mime.defects import Defect
from ops_mail.mime.fields import HeaderBlock, delimited, read_fields
from ops_mail.mime.notes import Notes
from ops_mail.mime.parameters import Parameters, read_parameters
from ops_mail.mime.transfer import decode_transfer, is_identity, read_encoding

_MEDIA_TYPE = re.compile(r"[a-z0-9!#$%&'*+.^_`{|}~-]{1,127}/[a-z0-9!#$%&'*+.^_`{|}~-]{1,127}\Z")  # RFC 6838 section 4.2
_DASHES_LF = re.compile(rb"\n--[^\r\n]*")
_DASHES_ANY = re.compile(rb"[\r\n]--[^\r\n]*")
_GUESSED_BOUNDARY = re.compile(
    rb"(?:\A|(?<=\n))--([^\s-][^\r\n]{0,200}?)[ \t]*\r?\n(?:content-[a-z-]{2,30}:|\r?\n)", re.IGNORECASE
)
_GUESS_WITHIN = 65536
_MESSAGE_TYPES = frozenset(("message/rfc822", "message/global", "message/news"))
_NO_PARAMETERS = Parameters("")


@dataclass(slots=True)
class Part:
    """One node. Mutable while the tree grows: its end is known only when a delimiter line closes it."""

    data: bytes
    header: HeaderBlock
    content_type: str
    parameters: Parameters
    encoding: str
    begin: int  # of the header
    end: int = -1
    depth: int = 0
    children: list[Part] = field(default_factory=list)
    boundary: bytes = b""  # as it is looked up; empty when none is open for this part
    closed: bool = False

    @property
    def is_multipart(self) -> bool:
        return self.content_type.startswith("multipart/")

    @property
    def is_message(self) -> bool:
        return self.content_type in _MESSAGE_TYPES

    def body(self) -> bytes:
        """The body as sent, still encoded."""
        return self.data[self.header.body : self.end]

    def content(self, notes: Notes) -> bytes:
        return decode_transfer(self.body(), self.encoding, notes)


def read_tree(data: bytes, notes: Notes) -> Part:
    """The tree of a whole mail. Depth and number of parts are bounded by the limits; passing them is a defect."""
    return _Builder(data, notes).build(0, len(data), None, 0)


class _Builder:
    """Reads one range of bytes. `_open` are the multiparts that are not ended yet, outermost first."""

    def __init__(self, data: bytes, notes: Notes) -> None:
        self._data = data
        self._notes = notes
        self._open: list[Part] = []
        self._by_boundary: dict[bytes, list[int]] = {}  # boundary → positions in _open, outermost first
        self._leaf: Part | None = None  # the part that ends at the next delimiter line
        self._resume = 0  # where the header read last ended
        self._full = False

    def build(self, begin: int, end: int, parent_type: str | None, depth: int) -> Part:
        root = self._part(begin, end, parent_type, depth)
        self._delimiters(end)
        self._end_leaf(end)
        self._close_above(0, end)
        return root

    def _part(self, begin: int, end: int, parent_type: str | None, depth: int) -> Part:
        """Read the header at `begin`; multiparts stay open, a message is entered at once."""
        is_top = parent_type is None or parent_type in _MESSAGE_TYPES
        header = read_fields(self._data, begin, end, self._by_boundary, self._notes, top=is_top)
        self._resume = header.body
        part = _described(self._data, header, begin, parent_type, depth, self._notes)
        if part.is_multipart and self._may_nest(part):
            self._open_multipart(part)
        elif part.is_message and is_identity(part.encoding) and self._may_nest(part) and self._notes.take_part():
            self._open.append(part)
            part.children.append(self._part(header.body, end, part.content_type, depth + 1))
        else:
            self._leaf = part
        return part

    def _open_multipart(self, part: Part) -> None:
        declared = part.parameters.boundary() or b""
        # A boundary may not end in a space. When one does, its lines say whether the space belongs to it.
        part.boundary = declared.rstrip(b" \t")
        if part.boundary != declared and b"--" + declared in self._data:
            part.boundary = declared
        if part.boundary:
            self._by_boundary.setdefault(part.boundary, []).append(len(self._open))
        self._open.append(part)

    def _may_nest(self, part: Part) -> bool:
        if part.depth < self._notes.limits.max_depth:
            return True
        self._notes.add(Defect.DEPTH_LIMIT)
        return False

    def _delimiters(self, end: int) -> None:
        data, notes = self._data, self._notes
        if self._resume == 0 and data.startswith(b"--"):
            self._delimiter(0, _line_at(data), end)
        has_bare_cr = data.count(b"\r") != data.count(b"\r\n")
        pattern = _DASHES_ANY if has_bare_cr else _DASHES_LF
        for steps, line in enumerate(pattern.finditer(data, max(self._resume - 1, 0), end)):
            if not self._open or self._full:
                return
            if steps % 512 == 511:
                notes.check_time()
            if line.start() + 1 >= self._resume:
                self._delimiter(line.start() + 1, line[0][1:], end)

    def _delimiter(self, start: int, line: bytes, end: int) -> None:
        """Act on a line that begins with "--"."""
        key = delimited(line, self._by_boundary)
        if key is None:
            return
        boundary, closes = key
        owner_at = self._by_boundary[boundary][-1]
        owner = self._open[owner_at]
        content_end = _before_break(self._data, start)
        self._end_leaf(content_end)
        self._close_above(owner_at + 1, content_end)
        if closes:
            if not owner.children:
                owner.end = content_end  # no start boundary: all up to here is the content
            owner.closed = True
            return
        if owner.closed:
            self._notes.add(Defect.PART_AFTER_END)
        if not self._notes.take_part():
            self._full = True
            return
        begin = _after_break(self._data, start + len(line))
        owner.children.append(self._part(begin, end, owner.content_type, owner.depth + 1))

    def _end_leaf(self, end: int) -> None:
        if self._leaf is not None:
            self._leaf.end = max(self._leaf.header.body, end)
            self._leaf = None

    def _close_above(self, keep: int, end: int) -> None:
        """End the multiparts and messages inside of `_open[keep - 1]`, innermost first."""
        while len(self._open) > keep:
            part = self._open.pop()
            if part.end < 0:
                part.end = max(part.header.body, end)
            if part.boundary:
                positions = self._by_boundary[part.boundary]
                positions.pop()
                if not positions:
                    del self._by_boundary[part.boundary]
            if part.is_multipart and not part.children:
                _without_parts(part, self._notes)
            elif part.is_multipart and not part.closed:
                self._notes.add(Defect.NO_END_BOUNDARY)


def is_media_type(text: str) -> bool:
    """True for `type/subtype`, lower case, of allowed length."""
    return _MEDIA_TYPE.match(text) is not None


def _described(data: bytes, header: HeaderBlock, begin: int, parent_type: str | None, depth: int, notes: Notes) -> Part:
    default = "message/rfc822" if parent_type == "multipart/digest" else "text/plain"
    content_type, parameters = default, _NO_PARAMETERS
    for value in header.all("content-type"):
        read = read_parameters(value)
        if is_media_type(read.value):
            content_type, parameters = read.value, read
            break
        parameters = read
        if read.value == "text" or not read.value:
            content_type = "text/plain"
        notes.add(Defect.BAD_CONTENT_TYPE)
    encoding = read_encoding(header.first("content-transfer-encoding"))
    return Part(data, header, content_type, parameters, encoding, begin, depth=depth)


def _without_parts(part: Part, notes: Notes) -> None:
    """A multipart in which no delimiter line was found: guess its boundary, or take its body as one text."""
    body = part.body()
    if not is_identity(part.encoding):  # not allowed for a multipart, sent all the same
        body = decode_transfer(body, part.encoding, notes)
    if not body.strip():
        return
    declared = part.parameters.boundary()
    found = _GUESSED_BOUNDARY.search(body, 0, _GUESS_WITHIN)
    boundary = found[1] if found is not None else None
    if boundary is None and declared and not is_identity(part.encoding) and b"--" + declared in body:
        boundary = declared
    notes.add(Defect.NO_START_BOUNDARY if part.closed else Defect.NO_BOUNDARY)
    if boundary is not None and part.depth < notes.limits.max_depth:
        header = b'Content-Type: %s; boundary="%s"\n\n' % (part.content_type.encode("latin_1"), boundary)
        inner = _Builder(header + body, notes).build(0, len(header) + len(body), "", part.depth + 1)
        part.children = inner.children
    if not part.children:
        text = _as_text(part, body, notes)
        if text is not None:
            part.children = [text]


def _as_text(part: Part, body: bytes, notes: Notes) -> Part | None:
    if not notes.take_part():
        return None
    header = HeaderBlock((), 0)
    return Part(body, header, "text/plain", _NO_PARAMETERS, "", 0, len(body), part.depth + 1)


def read_encoded_message(content: bytes, depth: int, notes: Notes) -> Part | None:
    """The tree of a message that was base64 or quoted-printable encoded as a whole (not allowed, sent all the same)."""
    if depth >= notes.limits.max_depth or not notes.take_part():
        notes.add(Defect.DEPTH_LIMIT)
        return None
    return _Builder(content, notes).build(0, len(content), "message/rfc822", depth)


def _line_at(data: bytes) -> bytes:
    return data[:1024].splitlines()[0]


def _before_break(data: bytes, position: int) -> int:
    """The line break before a delimiter line belongs to the delimiter (RFC 2046 section 5.1.1)."""
    if position > 0 and data[position - 1] == 0x0A:
        position -= 1
    if position > 0 and data[position - 1] == 0x0D:
        position -= 1
    return position


def _after_break(data: bytes, position: int) -> int:
    if data.startswith(b"\r\n", position):
        return position + 2
    return min(position + 1, len(data))
