"""Address lists (RFC 5322 section 3.4 with the obsolete forms, RFC 6532), read as leniently as mail clients do."""

from __future__ import annotations

import re

from ops_mail.core.mail import Address
from ops_mail.mime.address_entry import (
    AT,
    QUOTED_PAIR,
    SPACE,
    bare,
    bracketed,
    display_name,
    is_blank,
    split_at_spaces,
)
from ops_mail.mime.defects import Defect
from ops_mail.mime.notes import Notes
from ops_mail.mime.words import decode_value

_SIMPLE = re.compile(
    rb'(?:"([^"\\\r\n]*+)"|([^"\\<>(),:;@\[\]]*+))[ \t]*+<([^\s<>()\[\]",:;@\\]++@[^\s<>()\[\]",:;@\\]++)>'
)
_BARE = re.compile(rb"[^\s<>()\[\]\",:;@\\=]++@[^\s<>()\[\]\",:;@\\=]++")
_TOKEN = re.compile(
    rb"(?P<space>[ \t\r\n]++)"
    rb"|(?P<word>=\?[^?\s]{0,70}\?[bBqQ]\?[^?]*+\?=)"
    rb"|(?P<literal>\[[^\[\]\\\r\n,<>]*+\])"
    rb'|(?P<atom>[^\s()<>\[\],;:@"\\]++)'
    rb"|(?P<special>.)",
    re.DOTALL,
)
_QUOTED = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_COMMENT_PIECE = re.compile(rb"[^()\\]++|\\.|[()]|\\\Z", re.DOTALL)
_INNER = re.compile(r"<\s*([^\s<>]+@[^\s<>]+)\s*>")
_LONGEST_NAME = 2000  # of those in which an address is looked for
_LOOKS_LIKE = re.compile(r"[^\s<>,;:\"()]+@[^\s<>,;:\"()]+\Z")


def read_addresses(value: bytes, notes: Notes, limit: int) -> list[Address]:
    """The mailboxes of an address header, groups flattened, names decoded. Never raises; linear; at most `limit`."""
    simple = _SIMPLE.fullmatch(value.strip())
    if simple is not None and b"=?" not in simple[3]:
        name = simple[1] if simple[1] is not None else simple[2]
        return [Address(display_name([name], notes), decode_value(simple[3], notes))]
    if _BARE.fullmatch(value):
        return [Address("", decode_value(value, notes))]
    return _Reader(value, notes, limit).read()


class _Reader:
    """One pass over the tokens. What stands before "<" is the name; without "<" the whole entry is the address."""

    def __init__(self, value: bytes, notes: Notes, limit: int) -> None:
        self._value = value
        self._notes = notes
        self._limit = limit
        self._found: list[Address] = []
        self._phrase: list[bytes] = []  # tokens of the entry outside the angle brackets, space as b" "
        self._angle: list[bytes] | None = None  # tokens within them
        self._comments: list[bytes] = []
        self._angle_at = 0  # how many tokens of the phrase stand before them
        self._in_angle = False
        self._pending: list[tuple[str, bool]] = []  # entries without an address before this one; (text, is one word)
        self._comments_close = True
        self._quotes_close = True

    def read(self) -> list[Address]:
        position = 0
        steps = 0
        while position < len(self._value):
            steps += 1
            if steps % 1024 == 0:
                self._notes.check_time()
                if len(self._found) >= self._limit:
                    break
            match = _TOKEN.match(self._value, position)
            if match is None:
                break
            position = match.end()
            if match.lastgroup == "special":
                position = self._special(match[0], position)
            elif match.lastgroup == "space":
                self._tokens().append(SPACE)
            else:
                self._tokens().append(match[0])
        self._finish()
        self._flush_pending()
        if len(self._found) > self._limit:
            self._notes.add(Defect.ADDRESS_LIMIT)
        return self._found[: self._limit]

    def _tokens(self) -> list[bytes]:
        return self._angle if self._in_angle and self._angle is not None else self._phrase

    def _special(self, char: bytes, position: int) -> int:
        if char == b"(":
            return self._comment(position)
        if char == b'"':
            return self._quote(position)
        if char == b"<" and not self._in_angle:
            following = self._phrase[self._angle_at :]
            if self._angle is not None and not is_blank(following):  # "A <a@x> B <b@x>": the comma is missing
                del self._phrase[self._angle_at :]
                self._finish()
                self._phrase = following
            self._angle, self._in_angle = [], True
            self._angle_at = len(self._phrase)
        elif char == b">" and self._in_angle:
            self._in_angle = False
        elif char in b",;":
            if self._in_angle and b">" in self._value[position : position + 320] and self._is_route():
                self._tokens().append(char)  # <@one,@two:user@host>: an obsolete route
            else:
                self._finish()
                if char == b";":
                    self._flush_pending()
        elif char == b":" and not self._in_angle and self._angle is None and AT not in self._phrase:
            self._flush_pending()
            self._phrase, self._comments = [], []  # the name of a group
        else:
            self._tokens().append(char)
        return position

    def _is_route(self) -> bool:
        return bool(self._angle) and self._angle is not None and self._angle[0] == AT

    def _quote(self, position: int) -> int:
        """A quote that never closes is a plain character; that too is found out only once."""
        match = _QUOTED.match(self._value, position - 1) if self._quotes_close else None
        if match is None:
            self._quotes_close = False
            return position
        self._tokens().append(match[0])
        return match.end()

    def _comment(self, position: int) -> int:
        """Comments nest. One that never closes is no comment; that is found out only once in a header."""
        if not self._comments_close:
            self._tokens().append(b"(")
            return position
        depth, begin = 1, position
        for piece in _COMMENT_PIECE.finditer(self._value, position):
            if piece[0] == b"(":
                depth += 1
            elif piece[0] == b")":
                depth -= 1
                if depth == 0:
                    self._comments.append(QUOTED_PAIR.sub(rb"\1", self._value[begin : piece.start()]))
                    return piece.end()
        self._comments_close = False
        self._tokens().append(b"(")
        return position

    def _finish(self) -> None:
        phrase, angle = self._phrase, self._angle
        comments = self._comments
        self._phrase, self._angle, self._comments, self._in_angle = [], None, [], False
        if angle is not None:
            name = display_name(phrase, self._notes).strip('"') or display_name(comments, self._notes)
            addr = bracketed(angle, self._notes)
            if AT not in angle and SPACE in angle and not name:
                name, addr = display_name(angle, self._notes), ""  # <words and no address>
            self._add(", ".join((*self._take_pending(name), name)), addr)
        elif AT in phrase:
            self._flush_pending()
            entries = [phrase] if phrase.count(AT) == 1 else split_at_spaces(phrase)
            for entry in entries:
                name, addr = bare(entry, self._notes)
                self._add(name or display_name(comments, self._notes), addr)
        elif not is_blank(phrase):
            self._without_at(phrase)

    def _add(self, name: str, addr: str) -> None:
        if "@" not in addr and len(name) < _LONGEST_NAME:
            inner = _INNER.search(name)
            if inner is not None:  # the whole address was put into one encoded word
                addr, name = inner[1], name[: inner.start()].strip().strip('"')
            elif addr == "" and _LOOKS_LIKE.match(name):
                addr, name = name, ""
        if not name and not addr:
            return
        if "@" not in addr or addr == "@":
            self._notes.add(Defect.BAD_ADDRESS)
        self._found.append(Address(name, addr))

    def _without_at(self, tokens: list[bytes]) -> None:
        text = display_name(tokens, self._notes)
        if len(text) < _LONGEST_NAME and (_INNER.search(text) or _LOOKS_LIKE.match(text)):
            self._add(text, "")  # the whole address was encoded or quoted
        else:
            is_word = len([token for token in tokens if token != SPACE]) == 1 and not text.startswith("=?")
            self._pending.append((text, is_word))
            if len(self._pending) > 2:
                self._flush_pending()

    def _take_pending(self, name: str) -> list[str]:
        """The first halves of a name with a comma that is not quoted ("Doe, Jane <jane@x>").

        A word in lower case is a local user instead.
        """
        texts = [text for text, _ in self._pending]
        if name and texts and not any(text[:1].islower() for text in texts):
            self._pending = []
            return texts
        self._flush_pending()
        return []

    def _flush_pending(self) -> None:
        """Entries without "@" are no half of a name: a local user ("root"), or words."""
        for text, is_word in self._pending:
            self._notes.add(Defect.BAD_ADDRESS)
            self._found.append(Address("", text) if is_word else Address(text, ""))
        self._pending = []
