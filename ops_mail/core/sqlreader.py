"""A place in a statement's tokens: looking ahead and back, going past words, reading a table's name."""

from __future__ import annotations

from ops_mail.core.sqltokens import Kind, Token, UnreadableSqlError

TableName = tuple[str | None, str]
"""(schema or None, table), as written."""

# Reserved in SQLite, MariaDB and MySQL alike, so never an alias: these end a list of tables for certain.
LIST_ENDS = {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "SET", "SELECT", "VALUES"}
_NEVER_A_TABLE = LIST_ENDS | {"FROM", "JOIN", "ON", "INTO", "TABLE", "INDEX", "CREATE", "DROP", "IN", "AS"}
# Words that may be repeated to people: any other text of a statement may be a mail's.
_TELLABLE = _NEVER_A_TABLE | {"INSERT", "REPLACE", "UPDATE", "DELETE", "USING", "TRUNCATE", "RENAME", "TO"}
END = Token(Kind.MARK, "", glued=False)


class Reader:
    """`at` is the token that comes next."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def peek(self, ahead: int = 0) -> Token:
        """The token that comes next, or `ahead` places after it."""
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else END

    def before(self, back: int = 1) -> Token:
        """The token `back` places before the one that was just taken."""
        index = self.at - 1 - back
        return self.tokens[index] if index >= 0 else END

    def skip(self, words: set[str]) -> None:
        """Goes past any of `words`."""
        while self.peek().upper in words:
            self.at += 1

    def skip_to(self, mark: str) -> None:
        """Goes to the next `mark`, or to the end."""
        while self.at < len(self.tokens) and not self.peek().is_mark(mark):
            self.at += 1

    def name(self) -> TableName:
        """Reads a table's name, perhaps with its schema. Raises UnreadableSqlError when none stands here."""
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
            raise UnreadableSqlError(f"a table's name was expected{self._where()}")
        self.at += 1
        return token.text

    def _where(self) -> str:
        """As much of the place as may be told: the keywords at both sides of it."""
        last = self.tokens[self.at - 1].upper if self.at else ""
        following = self.peek()
        where = f" after {last}" if last in _TELLABLE else ""
        if following.upper in _TELLABLE:
            return f"{where}, not {following.upper}"
        return f"{where}, where the statement ends" if following is END else where
