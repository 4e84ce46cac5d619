"""Cuts SQL text into tokens the way SQLite, MariaDB and MySQL all agree on; text they read differently is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

_SPACE = " \t\n\r\f\v"
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|0b[01]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z0-9_$\x80-\U0010ffff]+")


class UnreadableSqlError(ValueError):
    """The text cannot be understood for certain, so nobody may rely on what it seems to say."""


class Kind(StrEnum):
    """What a token is."""

    WORD = "word"  # unquoted: identifier or keyword
    NUMBER = "number"
    NAME = "name"  # quoted identifier: `x` or "x"
    STRING = "string"  # 'x'
    MARK = "mark"  # one character of punctuation


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is the content without quotes; `upper` is its upper case for unquoted words and empty otherwise.

    `glued`: nothing, not even a blank or a comment, stands between this token and the one before.
    """

    kind: Kind
    text: str
    glued: bool
    upper: str = ""

    def is_mark(self, mark: str) -> bool:
        """Whether it is this punctuation character."""
        return self.kind is Kind.MARK and self.text == mark


def tokens_of(sql: str) -> Iterator[Token]:
    """Yields the tokens of `sql` without comments. Raises UnreadableSqlError where the servers' readings differ."""
    at, glued = 0, False
    while at < len(sql):
        after = _skip(sql, at)
        if after > at:
            at, glued = after, False
            continue
        token, at = _token(sql, at, glued)
        yield token
        glued = True


def _skip(sql: str, at: int) -> int:
    """The position behind the blank or comment at `at`; `at` itself if there is none."""
    if sql[at] in _SPACE:
        return at + 1
    if sql[at] == "#":
        return _line_end(sql, at)
    if sql.startswith("--", at):
        # MySQL needs white space after the dashes, SQLite does not: `1--1` is a number there and a comment here.
        if at + 2 < len(sql) and sql[at + 2] not in _SPACE:
            raise UnreadableSqlError("two dashes without a space after them")
        return _line_end(sql, at)
    if sql.startswith("/*", at):
        return _comment_end(sql, at)
    return at


def _token(sql: str, at: int, glued: bool) -> tuple[Token, int]:
    char = sql[at]
    if char in "'\"`":
        text, end = _quoted(sql, at)
        return Token(Kind.STRING if char == "'" else Kind.NAME, text, glued), end
    if char in "[]{}":
        # Brackets quote names in SQLite and braces open ODBC escapes in MySQL; nothing of ours needs either.
        raise UnreadableSqlError("brackets or braces")
    if number := _NUMBER.match(sql, at):
        if _WORD.match(sql, number.end()):
            raise UnreadableSqlError("a number that runs into a word")  # `1.FROM t` has a keyword in it, `1a` is a name
        return Token(Kind.NUMBER, number.group(), glued), number.end()
    if word := _WORD.match(sql, at):
        return Token(Kind.WORD, word.group(), glued, word.group().upper()), word.end()
    return Token(Kind.MARK, char, glued), at + 1


def _line_end(sql: str, at: int) -> int:
    end = sql.find("\n", at)
    return len(sql) if end < 0 else end + 1


def _comment_end(sql: str, at: int) -> int:
    if sql[at + 2 : at + 4].upper().startswith(("!", "M!")):
        raise UnreadableSqlError("a comment that some servers execute")
    end = sql.find("*/", at + 2)
    if end < 0:
        raise UnreadableSqlError("a comment without an end")
    if "/*" in sql[at + 2 : end]:
        raise UnreadableSqlError("a comment inside a comment")
    return end + 2


def _quoted(sql: str, at: int) -> tuple[str, int]:
    """The content of the quoted piece that starts at `at`, and where the text goes on. A doubled quote is one."""
    quote, start, at = sql[at], at + 1, at + 1
    parts: list[str] = []
    while at < len(sql):
        char = sql[at]
        if char == "\\" and quote != "`":
            # A backslash escapes in MySQL and is an ordinary character in SQLite: the end is alike for both unless
            # an odd number of them stands before a quote.
            following = sql[at + 1 : at + 2]
            if following in ("", quote):
                raise UnreadableSqlError("a backslash before a quote")
            at += 2
        elif char != quote:
            at += 1
        elif sql[at + 1 : at + 2] == quote:
            parts.append(sql[start : at + 1])
            at += 2
            start = at
        else:
            return "".join([*parts, sql[start:at]]), at + 1
    raise UnreadableSqlError("a quote without an end")
