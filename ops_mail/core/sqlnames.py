"""Which tables a SQL statement names: read from the text alone, and rather one too many than one too few.

The guard of promise P8 stands on it, so a doubt is never decided in the statement's favour: an unknown kind of
statement, an unknown form or a text that servers read differently raises UnreadableSql. The grammar is walked with
one frame for each open parenthesis; a frame knows whether it stands in a list of tables, where a comma leads to the
next one. Aliases are not told from tables where SQL itself hardly does (`DELETE a FROM …`): they count as tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from ops_mail.core.sqltokens import Kind, Token, UnreadableSql, tokens_of

__all__ = ["TableName", "UnreadableSql", "tables_named"]

TableName = tuple[str | None, str]
"""(schema or None, table), as written."""

_QUERY = {"SELECT", "WITH", "VALUES", "TABLE"}
_CHANGE = {"INSERT", "REPLACE", "UPDATE", "DELETE"}
_PLAIN = {"BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "UNLOCK", "KILL", "DO", "LOAD"}
_TABLE_LISTS = {"DROP", "LOCK", "ANALYZE", "OPTIMIZE", "CHECK", "RENAME", "TRUNCATE"}
# Reserved in SQLite, MariaDB and MySQL alike, so never an alias: these end a list of tables for certain.
_LIST_ENDS = {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "SET", "SELECT", "VALUES"}
_NEVER_A_TABLE = _LIST_ENDS | {"FROM", "JOIN", "ON", "INTO", "TABLE", "INDEX", "CREATE", "DROP", "IN", "AS"}
_MODIFIERS = {"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE"}
_FROM_FUNCTIONS = {"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR"}
_TABLE_FUNCTIONS = {"JSON_TABLE", "JSON_EACH", "JSON_TREE"}
_LISTINGS = {"TABLES", "TABLE"}
_COLUMN_LISTINGS = {"COLUMNS", "FIELDS", "INDEX", "INDEXES", "KEYS"}
_OTHER_SHOWS = {"VARIABLES", "STATUS", "WARNINGS", "ERRORS", "GRANTS", "DATABASES", "PROCESSLIST", "ENGINES", "COUNT"}
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


def tables_named(sql: str) -> frozenset[TableName]:
    """Every table that `sql` names, as (schema or None, table). Raises UnreadableSql when that is not certain."""
    tokens = list(tokens_of(sql))
    while tokens and tokens[-1].is_mark(";"):
        tokens.pop()
    return frozenset(_Walk(tokens).run()) if tokens else frozenset()


class _Walk:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.frames = [_Frame()]
        self.found: set[TableName] = set()
        self.head = tokens[0].upper
        self.index_ddl = False

    def run(self) -> set[TableName]:
        self._head()
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.kind is Kind.MARK:
                self._mark(token.text)
            elif token.kind is Kind.WORD and not self._is_part_of_name(token):
                self._word(token.upper)
        if len(self.frames) != 1:
            raise UnreadableSql("a parenthesis without an end")
        return self.found

    def _peek(self, ahead: int = 0) -> Token:
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else _END

    def _before(self, back: int = 1) -> Token:
        """The token `back` places before the one that was just taken."""
        index = self.at - 1 - back
        return self.tokens[index] if index >= 0 else _END

    def _skip(self, words: set[str]) -> None:
        while self._peek().upper in words:
            self.at += 1

    def _is_part_of_name(self, token: Token) -> bool:
        # `t.from`, `@from` and `:from` are names; with a blank between them the word is the keyword.
        return token.glued and any(self._before().is_mark(mark) for mark in ".@:")

    # --- how statements begin -------------------------------------------------------------------------------------

    def _head(self) -> None:
        if self.head in _QUERY | _CHANGE | _PLAIN or self.tokens[0].is_mark("("):
            return
        if self.head == "SET":
            if self._peek(1).upper == "STATEMENT":
                raise UnreadableSql("SET STATEMENT")
        elif self.head in ("CREATE", "ALTER", *_TABLE_LISTS):
            self._define()
        elif self.head in ("DESCRIBE", "DESC", "EXPLAIN"):
            self._describe()
        elif self.head == "SHOW":
            self._show()
        elif self.head == "PRAGMA":
            if any(token.text.lower() == "writable_schema" for token in self.tokens):
                raise UnreadableSql("PRAGMA writable_schema")
            self.at = len(self.tokens)  # tells or sets how SQLite behaves; reads no table
        else:
            raise UnreadableSql(f"the kind of statement is unknown: {self.tokens[0].text[:20]}")

    def _define(self) -> None:
        self.at = 1
        self._skip({"OR", "REPLACE", "TEMPORARY", "TEMP", "UNIQUE", "FULLTEXT", "LOCAL", "NO_WRITE_TO_BINLOG"})
        what = self._peek().upper
        if what == "INDEX" and self.head in ("CREATE", "DROP"):
            self.at += 1
            self._skip({"IF", "NOT", "EXISTS"})
            if self.head == "DROP":
                self._target()  # SQLite does not say whose index it is, so the name has to tell
            self.index_ddl = True
        elif self.head == "TRUNCATE" and what != "TABLE":
            self._target()
        elif what not in ("TABLE", "TABLES"):
            raise UnreadableSql(f"{self.head} of something that is no table")

    def _describe(self) -> None:
        self.at = 1
        self._skip({"ANALYZE", "EXTENDED", "QUERY", "PLAN"})
        if self._peek().upper == "FORMAT":
            self.at += 3
        if self._peek().upper not in _QUERY | _CHANGE and not self._peek().is_mark("("):
            self._target()

    def _show(self) -> None:
        self.at = 1
        self._skip({"FULL", "EXTENDED", "GLOBAL", "SESSION"})
        what = self._peek().upper
        self.at += 1
        if what in _LISTINGS:  # SHOW TABLES, SHOW TABLE STATUS: [FROM schema]
            self._skip({"STATUS"})
            if self._peek().upper in ("FROM", "IN"):
                self.at += 2
        elif what in _COLUMN_LISTINGS and self._peek().upper in ("FROM", "IN"):
            self.at += 1
            schema, table = self._name()
            if self._peek().upper in ("FROM", "IN"):
                self.at += 1
                schema = self._name()[1]
            self.found.add((schema, table))
        elif not (what in _OTHER_SHOWS or (what == "CREATE" and self._peek().upper == "TABLE")):
            raise UnreadableSql("an unknown kind of SHOW")

    # --- what stands inside ---------------------------------------------------------------------------------------

    def _mark(self, mark: str) -> None:
        frame = self.frames[-1]
        if mark == "(":
            before = self._before().upper
            plain = before in _FROM_FUNCTIONS and self._peek().upper not in _QUERY
            self.frames.append(_Frame(ctes=frame.ctes, plain_from=plain))
        elif mark == ")":
            self._close()
        elif mark == ",":
            if frame.in_list:
                self._factor()
        elif mark == ";":
            raise UnreadableSql("more than one statement")

    def _close(self) -> None:
        closed = self.frames.pop()
        if not self.frames:
            raise UnreadableSql("a parenthesis too many")
        if closed.cte is not None:
            frame = self.frames[-1]
            frame.ctes |= {closed.cte}
            if self._peek().is_mark(","):
                self._with(start=1, recursive=closed.cte in closed.ctes)

    def _word(self, word: str) -> None:
        frame, before = self.frames[-1], self._before().upper
        if word in _LIST_ENDS:
            if word == "UNION" and self.head in ("CREATE", "ALTER") and (self._peek().is_mark("=") or self._peek().is_mark("(")):
                raise UnreadableSql("a merge table")
            frame.in_list = False
        if word == "FROM":
            if frame.plain_from:
                frame.plain_from = False
            elif not (before == "DISTINCT" and self._before(2).upper in ("IS", "NOT")):
                frame.in_list = True
                self._factor()
        elif word == "JOIN" or (word == "STRAIGHT_JOIN" and frame.in_list):
            self._factor()
        elif word == "USING":
            if frame.in_list and not self._peek().is_mark("("):
                self._factor()
        elif word == "WITH":
            if not frame.had_with:
                frame.had_with = True
                recursive = self._peek().upper == "RECURSIVE"
                self._with(start=1 if recursive else 0, recursive=recursive)
        elif word == "IN":
            self._in(before)
        elif word == "DUPLICATE":
            if (self._peek().upper, self._peek(1).upper) == ("KEY", "UPDATE"):
                frame.in_list = False
        elif word == "NEXT" or (word in ("NEXTVAL", "LASTVAL", "SETVAL") and self._peek().is_mark("(")):
            if word != "NEXT" or self._peek().upper == "VALUE":
                raise UnreadableSql("a sequence")
        else:
            self._change(word, before)

    def _change(self, word: str, before: str) -> None:
        frame = self.frames[-1]
        if word == "INTO":
            if self._peek().upper in ("OUTFILE", "DUMPFILE"):
                raise UnreadableSql("a query into a file")
            if self._peek().upper != "TABLE" and not (self._peek().is_mark("@") or self._peek().is_mark(":")):
                self._target()
        elif word in ("TABLE", "TABLES"):
            if self._peek().upper not in ("STATUS", "SPACE"):
                self._skip({"IF", "NOT", "EXISTS"})
                self._target()
                frame.in_list = frame.changes = self.head in _TABLE_LISTS and len(self.frames) == 1
                if self.head == "CREATE" and self._peek().upper == "LIKE":
                    self.at += 1
                    self._target()
        elif word == "LIKE" and self.head == "CREATE" and self._before().is_mark("("):
            self._target()
        elif word == "REFERENCES" or (word == "TO" and self.head == "RENAME"):
            self._target()
        elif word == "ON" and self.index_ddl:
            self.index_ddl = False
            self._target()
        elif word == "RENAME" and self.head == "ALTER":
            if self._peek().upper not in ("COLUMN", "INDEX", "KEY"):
                self._skip({"TO", "AS"})
                self._target()
        elif (word == "UPDATE" and before not in ("FOR", "KEY", "DO", "ON")) or (word == "DELETE" and before != "ON"):
            self._modifiers()
            frame.in_list = frame.changes = True
            if self._peek().upper != "FROM":
                self._factor()
        elif word in ("INSERT", "REPLACE") and before not in ("OR", "CONFLICT", "ON"):
            if not self._peek().is_mark("("):
                self._modifiers()
                if self._peek().upper != "INTO":
                    self._target()

    def _modifiers(self) -> None:
        self._skip(_MODIFIERS)
        if self._peek().upper == "OR":  # SQLite: INSERT OR REPLACE, UPDATE OR IGNORE
            self.at += 2

    def _in(self, before: str) -> None:
        # SQLite: `x IN some_table`. Not so: LOCK IN SHARE MODE, AGAINST (… IN BOOLEAN MODE).
        following, second = self._peek(), self._peek(1).upper
        is_mode = (before == "LOCK" and following.upper == "SHARE") or second in ("MODE", "LANGUAGE")
        if not is_mode and following.kind in (Kind.WORD, Kind.NAME, Kind.STRING):
            self._factor()

    def _with(self, start: int, recursive: bool) -> None:
        """Opens the body of `name [(columns)] AS [[NOT] MATERIALIZED] (`, if that is what stands here."""
        name, at = self._peek(start), start + 1
        if name.kind not in (Kind.WORD, Kind.NAME):
            return
        if self._peek(at).is_mark("("):
            while self._peek(at) is not _END and not self._peek(at).is_mark(")"):
                at += 1
            at += 1
        if self._peek(at).upper != "AS":
            return
        at += 1
        while self._peek(at).upper in ("NOT", "MATERIALIZED"):
            at += 1
        if not self._peek(at).is_mark("("):
            return
        self.at += at + 1
        # Until its body is closed the name still means a table, unless the WITH is recursive.
        ctes = self.frames[-1].ctes
        self.frames.append(_Frame(ctes=ctes | {name.text} if recursive else ctes, cte=name.text))

    def _factor(self) -> None:
        """One item of a list of tables: a table, a subquery, a table function or a list in parentheses."""
        frame, token = self.frames[-1], self._peek()
        if token.upper == "LATERAL" and self._peek(1).is_mark("("):
            self.at += 1
            token = self._peek()
        if token.is_mark("("):
            self.at += 1
            inner = _Frame(ctes=frame.ctes, changes=frame.changes)
            self.frames.append(inner)
            if self._peek().upper not in _QUERY:
                inner.in_list = True
                self._factor()
        elif token.kind is Kind.WORD and self._peek(1).is_mark("("):
            if token.upper not in _TABLE_FUNCTIONS and not token.upper.startswith("PRAGMA_"):
                raise UnreadableSql("an unknown table function")
            self.at += 1
        elif token.upper == "DUAL":
            self.at += 1
        else:
            schema, table = self._name()
            if frame.changes or schema is not None or table not in frame.ctes:
                self.found.add((schema, table))

    def _target(self) -> None:
        """The table that a statement writes to, defines or describes."""
        self.found.add(self._name())

    def _name(self) -> TableName:
        parts = [self._part()]
        while self._peek().is_mark("."):
            self.at += 1
            parts.append(self._part())
        if len(parts) > 2:
            raise UnreadableSql("a name of more than two parts")
        return (parts[0] if len(parts) == 2 else None, parts[-1])

    def _part(self) -> str:
        token = self._peek()
        if token.kind not in (Kind.WORD, Kind.NAME, Kind.STRING) or token.upper in _NEVER_A_TABLE:
            raise UnreadableSql("a table's name was expected")
        self.at += 1
        return token.text
