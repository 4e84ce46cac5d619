"""The open parentheses of a statement, and the tables that it names in them.

One frame for each open parenthesis; a frame knows whether it stands in a list of tables, where a comma leads to the
next one.
"""

from __future__ import annotations

from dataclasses import dataclass

from ops_mail.core.sqlreader import END, Reader, TableName
from ops_mail.core.sqltokens import Kind, Token, UnreadableSqlError

QUERY = {"SELECT", "WITH", "VALUES", "TABLE"}
_TABLE_FUNCTIONS = {"JSON_TABLE", "JSON_EACH", "JSON_TREE"}


@dataclass(slots=True)
class Frame:
    """One open parenthesis. `ctes`: names that stand for a WITH query here."""

    ctes: frozenset[str] = frozenset()
    in_list: bool = False
    changes: bool = False  # the list holds what UPDATE or DELETE writes to: no WITH name hides a table there
    plain_from: bool = False  # `EXTRACT(… FROM x)`: this FROM names no table
    cte: str | None = None  # the WITH query whose body this frame is
    had_with: bool = False


class Frames(Reader):
    """A reader that knows in which frame it stands; the last one is the innermost.

    `found`: the tables named so far; `changed`: those of them that the statement writes to, or may write to.
    """

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.frames = [Frame()]
        self.found: set[TableName] = set()
        self.changed: set[TableName] = set()

    def target(self) -> None:
        """The table that a statement writes to, defines or describes."""
        name = self.name()
        self.found.add(name)
        self.changed.add(name)

    def factor(self) -> None:
        """One item of a list of tables: a table, a subquery, a table function or a list in parentheses."""
        frame, token = self.frames[-1], self.peek()
        if token.upper == "LATERAL" and self.peek(1).is_mark("("):
            self.at += 1
            token = self.peek()
        if token.is_mark("("):
            self.at += 1
            inner = Frame(ctes=frame.ctes, changes=frame.changes)
            self.frames.append(inner)
            if self.peek().upper not in QUERY:
                inner.in_list = True
                self.factor()
        elif token.kind is Kind.WORD and self.peek(1).is_mark("("):
            if token.upper not in _TABLE_FUNCTIONS and not token.upper.startswith("PRAGMA_"):
                raise UnreadableSqlError("an unknown table function")
            self.at += 1
        elif token.upper == "DUAL":
            self.at += 1
        else:
            schema, table = self.name()
            if frame.changes or schema is not None or table not in frame.ctes:
                self.found.add((schema, table))
            if frame.changes:
                self.changed.add((schema, table))

    def open_with(self, start: int, recursive: bool) -> None:
        """Opens the body of `name [(columns)] AS [[NOT] MATERIALIZED] (`, if that is what stands here."""
        name, at = self.peek(start), start + 1
        if name.kind not in (Kind.WORD, Kind.NAME):
            return
        if self.peek(at).is_mark("("):
            while self.peek(at) is not END and not self.peek(at).is_mark(")"):
                at += 1
            at += 1
        if self.peek(at).upper != "AS":
            return
        at += 1
        while self.peek(at).upper in ("NOT", "MATERIALIZED"):
            at += 1
        if not self.peek(at).is_mark("("):
            return
        self.at += at + 1
        # Until its body is closed the name still means a table, unless the WITH is recursive.
        ctes = self.frames[-1].ctes
        self.frames.append(Frame(ctes=ctes | {name.text} if recursive else ctes, cte=name.text))

    def close(self) -> None:
        """Leaves the innermost frame; its WITH query, if it was one's body, has a name from here on."""
        closed = self.frames.pop()
        if not self.frames:
            raise UnreadableSqlError("a parenthesis too many")
        if closed.cte is not None:
            frame = self.frames[-1]
            frame.ctes |= {closed.cte}
            if self.peek().is_mark(","):
                self.open_with(start=1, recursive=closed.cte in closed.ctes)
