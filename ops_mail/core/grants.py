"""Reads the answer of SHOW GRANTS: what an account may do on which table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_GRANT = re.compile(
    r"^GRANT\s+(?P<what>.+?)\s+ON\s+(?:TABLE\s+)?(?P<where>.+?)\s+TO\s+[`'\"]", re.IGNORECASE | re.DOTALL
)
_ROLE = re.compile(r"^GRANT\s+[`'\"]", re.IGNORECASE)
_COLUMNS = re.compile(r"\s*\([^)]*\)")
_OBJECT = re.compile(r"(?:`(?P<schema>(?:[^`]|``)+)`|(?P<any>\*))\.(?:`(?P<table>(?:[^`]|``)+)`|\*)")
_ROUTINES = ("PROCEDURE ", "FUNCTION ", "PACKAGE ")
_TABLE_PRIVILEGES = frozenset(
    {"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "REFERENCES", "TRIGGER"}
)


@dataclass(frozen=True, slots=True)
class Grant:
    """`privileges` on the tables that match; None = any. A privilege on single columns counts as one on the table."""

    privileges: frozenset[str]
    schema: str | None  # a LIKE pattern when `table` is None
    table: str | None

    def covers(self, schema: str, table: str) -> bool:
        """Whether it holds for that table."""
        if self.table is not None:
            return (self.schema, self.table) == (schema, table)
        return self.schema is None or _like(self.schema, schema)


@dataclass(frozen=True, slots=True)
class Grants:
    """All grants of an account. Not `complete`: there are lines whose meaning cannot be told."""

    grants: tuple[Grant, ...]
    complete: bool

    def allows(self, privilege: str, schema: str, table: str) -> bool:
        """Whether any of them gives `privilege` on that table."""
        return any(privilege in grant.privileges and grant.covers(schema, table) for grant in self.grants)


def read_grants(lines: Iterable[str]) -> Grants:
    """From the lines of SHOW GRANTS. The grants behind roles have to be among the lines."""
    grants: list[Grant] = []
    complete = True
    for line in lines:
        if _ROLE.match(line) or line.upper().startswith(("GRANT PROXY ", "SET DEFAULT ROLE ")):
            continue
        grant = _grant(line)
        if grant is None:
            complete = False  # a partial REVOKE of MySQL, or a form nobody has seen yet
        else:
            grants.append(grant)
    return Grants(tuple(grants), complete)


def _grant(line: str) -> Grant | None:
    match = _GRANT.match(line)
    if match is None:
        return None
    where = _OBJECT.fullmatch(match["where"])
    if where is None:
        # A routine (`GRANT EXECUTE ON PROCEDURE a.b TO`) is no table.
        return Grant(frozenset(), None, None) if match["where"].upper().startswith(_ROUTINES) else None
    words = {word.strip().upper() for word in _COLUMNS.sub("", match["what"]).split(",")}
    privileges = _TABLE_PRIVILEGES if words & {"ALL", "ALL PRIVILEGES"} else frozenset(words) & _TABLE_PRIVILEGES
    return Grant(privileges, _unquote(where["schema"]), _unquote(where["table"]))


def _unquote(name: str | None) -> str | None:
    return None if name is None else name.replace("``", "`")


def _like(pattern: str, name: str) -> bool:
    """SQL's LIKE: `%` any characters, `_` one, a backslash takes the meaning away."""
    parts: list[str] = []
    characters = iter(pattern)
    for char in characters:
        if char == "\\":
            parts.append(re.escape(next(characters, "\\")))
        else:
            parts.append({"%": ".*", "_": "."}.get(char, re.escape(char)))
    return re.fullmatch("".join(parts), name, re.DOTALL) is not None
