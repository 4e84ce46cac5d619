"""The grammar under `ops_mail.core.sqlnames`: walks a statement's tokens and gathers the tables they name.

Aliases are not told from tables where SQL itself hardly does (`DELETE a FROM …`): they count as tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ops_mail.core.sqlframes import QUERY, Frame, Frames
from ops_mail.core.sqlreader import LIST_ENDS, TableName
from ops_mail.core.sqltokens import Kind, Token, UnreadableSqlError

TABLE_LISTS = {"DROP", "LOCK", "ANALYZE", "OPTIMIZE", "CHECK", "RENAME", "TRUNCATE"}
_MODIFIERS = {"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE"}
_FROM_FUNCTIONS = {"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR"}


class Walk(Frames):
    """One statement on its way through the grammar."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.head = tokens[0].upper
        self.index_ddl = False

    def run(self) -> set[TableName]:
        """Walks from `at` to the end. Raises UnreadableSqlError."""
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.kind is Kind.MARK:
                self._mark(token.text)
            elif token.kind is Kind.WORD and not self._is_part_of_name(token):
                self._word(token.upper)
        if len(self.frames) != 1:
            raise UnreadableSqlError("a parenthesis without an end")
        return self.found

    def _is_part_of_name(self, token: Token) -> bool:
        # `t.from`, `@from` and `:from` are names; with a blank between them the word is the keyword.
        return token.glued and any(self.before().is_mark(mark) for mark in ".@:")

    def _mark(self, mark: str) -> None:
        frame = self.frames[-1]
        if mark == "(":
            before = self.before().upper
            plain = before in _FROM_FUNCTIONS and self.peek().upper not in QUERY
            self.frames.append(Frame(ctes=frame.ctes, plain_from=plain))
        elif mark == ")":
            self.close()
        elif mark == ",":
            if frame.in_list:
                self.factor()
        elif mark == ";":
            raise UnreadableSqlError("more than one statement")

    def _word(self, word: str) -> None:
        if word in LIST_ENDS:
            self.frames[-1].in_list = False
        rule = self._RULES.get(word)
        if rule is not None:
            rule(self, self.before().upper)

    def _from(self, before: str) -> None:
        frame = self.frames[-1]
        if frame.plain_from:
            frame.plain_from = False
        elif not (before == "DISTINCT" and self.before(2).upper in ("IS", "NOT")):
            frame.in_list = True
            self.factor()

    def _join(self, _before: str) -> None:
        self.factor()

    def _straight_join(self, _before: str) -> None:
        if self.frames[-1].in_list:  # elsewhere it is an option of SELECT
            self.factor()

    def _using(self, _before: str) -> None:
        if self.frames[-1].in_list and not self.peek().is_mark("("):  # DELETE FROM a USING b
            self.factor()

    def _in(self, before: str) -> None:
        # SQLite: `x IN some_table`. Not so: LOCK IN SHARE MODE, AGAINST (… IN BOOLEAN MODE).
        following, second = self.peek(), self.peek(1).upper
        is_mode = (before == "LOCK" and following.upper == "SHARE") or second in ("MODE", "LANGUAGE")
        if not is_mode and following.kind in (Kind.WORD, Kind.NAME, Kind.STRING):
            self.factor()

    def _union(self, _before: str) -> None:
        if self.head in ("CREATE", "ALTER") and (self.peek().is_mark("=") or self.peek().is_mark("(")):
            raise UnreadableSqlError("a merge table")

    def _duplicate(self, _before: str) -> None:
        if (self.peek().upper, self.peek(1).upper) == ("KEY", "UPDATE"):
            self.frames[-1].in_list = False

    def _sequence(self, _before: str) -> None:
        if self.peek().upper == "VALUE" or self.peek().is_mark("("):  # NEXT VALUE FOR s, NEXTVAL(s)
            raise UnreadableSqlError("a sequence")

    def _with_clause(self, _before: str) -> None:
        frame = self.frames[-1]
        if not frame.had_with:
            frame.had_with = True
            recursive = self.peek().upper == "RECURSIVE"
            self.open_with(start=1 if recursive else 0, recursive=recursive)

    def _into(self, _before: str) -> None:
        if self.peek().upper in ("OUTFILE", "DUMPFILE"):
            raise UnreadableSqlError("a query into a file")
        if self.peek().upper != "TABLE" and not (self.peek().is_mark("@") or self.peek().is_mark(":")):
            self.target()

    def _table(self, _before: str) -> None:
        frame = self.frames[-1]
        self.skip({"IF", "NOT", "EXISTS"})
        self.target()
        frame.in_list = frame.changes = self.head in TABLE_LISTS and len(self.frames) == 1
        if self.head == "CREATE" and self.peek().upper == "LIKE":
            self.at += 1
            self.target()

    def _like(self, _before: str) -> None:
        if self.head == "CREATE" and self.before().is_mark("("):  # CREATE TABLE a (LIKE b)
            self.target()

    def _references(self, _before: str) -> None:
        self.target()

    def _to(self, _before: str) -> None:
        if self.head == "RENAME":
            self.target()

    def _on(self, _before: str) -> None:
        if self.index_ddl:
            self.index_ddl = False
            self.target()

    def _rename(self, _before: str) -> None:
        if self.head == "ALTER" and self.peek().upper not in ("COLUMN", "INDEX", "KEY"):
            self.skip({"TO", "AS"})
            self.target()

    def _update(self, before: str) -> None:
        if before not in ("FOR", "KEY", "DO", "ON"):
            self._changed_list()

    def _delete(self, before: str) -> None:
        if before != "ON":
            self._changed_list()

    def _changed_list(self) -> None:
        frame = self.frames[-1]
        self._modifiers()
        frame.in_list = frame.changes = True
        if self.peek().upper != "FROM":
            self.factor()

    def _insert(self, before: str) -> None:
        if before not in ("OR", "CONFLICT", "ON") and not self.peek().is_mark("("):  # INSERT(…), REPLACE(…) exist too
            self._modifiers()
            if self.peek().upper != "INTO":
                self.target()

    def _modifiers(self) -> None:
        self.skip(_MODIFIERS)
        if self.peek().upper == "OR":  # SQLite: INSERT OR REPLACE, UPDATE OR IGNORE
            self.at += 2

    _RULES: ClassVar[dict[str, Callable[[Walk, str], None]]] = {
        "FROM": _from,
        "JOIN": _join,
        "STRAIGHT_JOIN": _straight_join,
        "USING": _using,
        "IN": _in,
        "UNION": _union,
        "DUPLICATE": _duplicate,
        "NEXT": _sequence,
        "NEXTVAL": _sequence,
        "LASTVAL": _sequence,
        "SETVAL": _sequence,
        "WITH": _with_clause,
        "INTO": _into,
        "TABLE": _table,
        "TABLES": _table,
        "LIKE": _like,
        "REFERENCES": _references,
        "TO": _to,
        "ON": _on,
        "RENAME": _rename,
        "UPDATE": _update,
        "DELETE": _delete,
        "INSERT": _insert,
        "REPLACE": _insert,
    }
    """What each keyword means for the tables; called with the word before it."""
