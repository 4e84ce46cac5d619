"""The grammar under `ops_mail.core.sqlnames`: walks a statement's tokens and gathers the tables they name.

One frame for each open parenthesis; a frame knows whether it stands in a list of tables, where a comma leads to the
next one. Aliases are not told from tables where SQL itself hardly does (`DELETE a FROM …`): they count as tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ops_mail.core.sqltokens import Kind, Token, UnreadableSqlError

TableName = tuple[str | None, str]
"""(schema or None, table), as written."""

QUERY = {"SELECT", "WITH", "VALUES", "TABLE"}
TABLE_LISTS = {"DROP", "LOCK", "ANALYZE", "OPTIMIZE", "CHECK", "RENAME", "TRUNCATE"}
# Reserved in SQLite, MariaDB and MySQL alike, so never an alias: these end a list of tables for certain.
_LIST_ENDS = {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "SET", "SELECT", "VALUES"}
_NEVER_A_TABLE = _LIST_ENDS | {"FROM", "JOIN", "ON", "INTO", "TABLE", "INDEX", "CREATE", "DROP", "IN", "AS"}
_MODIFIERS = {"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE"}
_FROM_FUNCTIONS = {"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR"}
_TABLE_FUNCTIONS = {"JSON_TABLE", "JSON_EACH", "JSON_TREE"}
_END = Token(Kind.MARK, "", glued=False)


@dataclass(slots=True)
class _Frame:
    """One open parenthesis. `ctes`: names that stand for a WITH query here."""

    ctes: frozenset[str] = frozenset()
    in_list: bool = False
    changes: bool = False  # the list holds what UPDATE or DELETE writes to: no WITH name hides a table there
    plain_from: bool = False  # `EXTRACT(… FROM x)`: this FROM names no table
    cte: str | None = None  # the WITH query whose body this frame is
    had_with: bool = False


class Walk:
    """One statement on its way through the grammar; `at` is the token that comes next."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.frames = [_Frame()]
        self.found: set[TableName] = set()
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

    def peek(self, ahead: int = 0) -> Token:
        """The token that comes next, or `ahead` places after it."""
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else _END

    def skip_to(self, mark: str) -> None:
        """Goes to the next `mark`, or to the end."""
        while self.at < len(self.tokens) and not self.peek().is_mark(mark):
            self.at += 1

    def _before(self, back: int = 1) -> Token:
        """The token `back` places before the one that was just taken."""
        index = self.at - 1 - back
        return self.tokens[index] if index >= 0 else _END

    def skip(self, words: set[str]) -> None:
        """Goes past any of `words`."""
        while self.peek().upper in words:
            self.at += 1

    def _is_part_of_name(self, token: Token) -> bool:
        # `t.from`, `@from` and `:from` are names; with a blank between them the word is the keyword.
        return token.glued and any(self._before().is_mark(mark) for mark in ".@:")

    def _mark(self, mark: str) -> None:
        frame = self.frames[-1]
        if mark == "(":
            before = self._before().upper
            plain = before in _FROM_FUNCTIONS and self.peek().upper not in QUERY
            self.frames.append(_Frame(ctes=frame.ctes, plain_from=plain))
        elif mark == ")":
            self._close()
        elif mark == ",":
            if frame.in_list:
                self._factor()
        elif mark == ";":
            raise UnreadableSqlError("more than one statement")

    def _close(self) -> None:
        closed = self.frames.pop()
        if not self.frames:
            raise UnreadableSqlError("a parenthesis too many")
        if closed.cte is not None:
            frame = self.frames[-1]
            frame.ctes |= {closed.cte}
            if self.peek().is_mark(","):
                self._with(start=1, recursive=closed.cte in closed.ctes)

    def _word(self, word: str) -> None:
        if word in _LIST_ENDS:
            self.frames[-1].in_list = False
        rule = self._RULES.get(word)
        if rule is not None:
            rule(self, self._before().upper)

    def _from(self, before: str) -> None:
        frame = self.frames[-1]
        if frame.plain_from:
            frame.plain_from = False
        elif not (before == "DISTINCT" and self._before(2).upper in ("IS", "NOT")):
            frame.in_list = True
            self._factor()

    def _join(self, _before: str) -> None:
        self._factor()

    def _straight_join(self, _before: str) -> None:
        if self.frames[-1].in_list:  # elsewhere it is an option of SELECT
            self._factor()

    def _using(self, _before: str) -> None:
        if self.frames[-1].in_list and not self.peek().is_mark("("):  # DELETE FROM a USING b
            self._factor()

    def _in(self, before: str) -> None:
        # SQLite: `x IN some_table`. Not so: LOCK IN SHARE MODE, AGAINST (… IN BOOLEAN MODE).
        following, second = self.peek(), self.peek(1).upper
        is_mode = (before == "LOCK" and following.upper == "SHARE") or second in ("MODE", "LANGUAGE")
        if not is_mode and following.kind in (Kind.WORD, Kind.NAME, Kind.STRING):
            self._factor()

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
            self._with(start=1 if recursive else 0, recursive=recursive)

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
        if self.head == "CREATE" and self._before().is_mark("("):  # CREATE TABLE a (LIKE b)
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
            self._factor()

    def _insert(self, before: str) -> None:
        if before not in ("OR", "CONFLICT", "ON") and not self.peek().is_mark("("):  # INSERT(…), REPLACE(…) exist too
            self._modifiers()
            if self.peek().upper != "INTO":
                self.target()

    def _modifiers(self) -> None:
        self.skip(_MODIFIERS)
        if self.peek().upper == "OR":  # SQLite: INSERT OR REPLACE, UPDATE OR IGNORE
            self.at += 2

    def _with(self, start: int, recursive: bool) -> None:
        """Opens the body of `name [(columns)] AS [[NOT] MATERIALIZED] (`, if that is what stands here."""
        name, at = self.peek(start), start + 1
        if name.kind not in (Kind.WORD, Kind.NAME):
            return
        if self.peek(at).is_mark("("):
            while self.peek(at) is not _END and not self.peek(at).is_mark(")"):
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
        self.frames.append(_Frame(ctes=ctes | {name.text} if recursive else ctes, cte=name.text))

    def _factor(self) -> None:
        """One item of a list of tables: a table, a subquery, a table function or a list in parentheses."""
        frame, token = self.frames[-1], self.peek()
        if token.upper == "LATERAL" and self.peek(1).is_mark("("):
            self.at += 1
            token = self.peek()
        if token.is_mark("("):
            self.at += 1
            inner = _Frame(ctes=frame.ctes, changes=frame.changes)
            self.frames.append(inner)
            if self.peek().upper not in QUERY:
                inner.in_list = True
                self._factor()
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

    def target(self) -> None:
        """The table that a statement writes to, defines or describes."""
        self.found.add(self.name())

    def name(self) -> TableName:
        """Reads a table's name, perhaps with its schema."""
        parts = [self._part()]
        while self.peek().is_mark("."):
            self.at += 1
            parts.append(self._part())
        if len(parts) > 2:
            raise UnreadableSqlError("a name of more than two parts")
        return (parts[0] if len(parts) == 2 else None, parts[-1])

    def _part(self) -> str:
        token = self.peek()
        if token.kind not in (Kind.WORD, Kind.NAME, Kind.STRING) or token.upper in _NEVER_A_TABLE:
            raise UnreadableSqlError("a table's name was expected")
        self.at += 1
        return token.text

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
