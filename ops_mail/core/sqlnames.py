"""Which tables a SQL statement names: read from the text alone, and rather one too many than one too few.

The guard of promise P8 stands on it, so a doubt is never decided in the statement's favour: an unknown kind of
statement, an unknown form or a text that servers read differently raises UnreadableSqlError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ops_mail.core.sqlframes import QUERY
from ops_mail.core.sqlreader import TableName
from ops_mail.core.sqltokens import Token, UnreadableSqlError, tokens_of
from ops_mail.core.sqlwalk import TABLE_LISTS, Walk

__all__ = ["Statement", "TableName", "UnreadableSqlError", "read_statement", "tables_named"]

_CHANGE = {"INSERT", "REPLACE", "UPDATE", "DELETE"}
_PLAIN = {"BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "UNLOCK", "KILL", "DO", "LOAD"}
_LISTINGS = {"TABLES", "TABLE"}
_COLUMN_LISTINGS = {"COLUMNS", "FIELDS", "INDEX", "INDEXES", "KEYS"}
_OTHER_SHOWS = {"VARIABLES", "STATUS", "WARNINGS", "ERRORS", "GRANTS", "DATABASES", "PROCESSLIST", "ENGINES", "COUNT"}


@dataclass(frozen=True, slots=True)
class Statement:
    """What was read: the word it begins with (upper case), every table that it names, and those that it may change.

    In an UPDATE or DELETE of joined tables all of them count as changed.
    """

    head: str
    tables: frozenset[TableName]
    changed: frozenset[TableName]
    tokens: Sequence[Token]


def read_statement(sql: str) -> Statement:
    """Raises UnreadableSqlError when it is not certain which tables `sql` names."""
    tokens = list(tokens_of(sql))
    while tokens and tokens[-1].is_mark(";"):
        tokens.pop()
    if not tokens:
        return Statement("", frozenset(), frozenset(), tokens)
    walk = Walk(tokens)
    _head(walk)
    return Statement(walk.head, frozenset(walk.run()), frozenset(walk.changed), tokens)


def tables_named(sql: str) -> frozenset[TableName]:
    """Every table that `sql` names, as (schema or None, table). Raises UnreadableSqlError when that is not certain."""
    return read_statement(sql).tables


def _head(walk: Walk) -> None:
    if walk.head in QUERY | _CHANGE | _PLAIN or walk.tokens[0].is_mark("("):
        return
    if walk.head == "SET":
        if walk.peek(1).upper == "STATEMENT":
            raise UnreadableSqlError("SET STATEMENT")
    elif walk.head in ("CREATE", "ALTER", *TABLE_LISTS):
        _define(walk)
    elif walk.head in ("DESCRIBE", "DESC", "EXPLAIN"):
        _describe(walk)
    elif walk.head == "SHOW":
        _show(walk)
    elif walk.head == "PRAGMA":
        if any(token.text.lower() == "writable_schema" for token in walk.tokens):
            raise UnreadableSqlError("PRAGMA writable_schema")
        # Anything else tells or sets how SQLite behaves and reads no table; a second statement is found by the walk.
        walk.skip_to(";")
    else:
        raise UnreadableSqlError(f"the kind of statement is unknown: {walk.head[:20] or 'it begins with no word'}")


def _define(walk: Walk) -> None:
    walk.at = 1
    walk.skip({"OR", "REPLACE", "TEMPORARY", "TEMP", "UNIQUE", "FULLTEXT", "LOCAL", "NO_WRITE_TO_BINLOG"})
    what = walk.peek().upper
    if what == "INDEX" and walk.head in ("CREATE", "DROP"):
        walk.at += 1
        walk.skip({"IF", "NOT", "EXISTS"})
        if walk.head == "DROP":
            walk.target()  # SQLite does not say whose index it is, so the name has to tell
        walk.index_ddl = True
    elif walk.head == "TRUNCATE" and what != "TABLE":
        walk.target()
    elif what not in ("TABLE", "TABLES"):
        raise UnreadableSqlError(f"{walk.head} of something that is no table")


def _describe(walk: Walk) -> None:
    walk.at = 1
    walk.skip({"ANALYZE", "EXTENDED", "QUERY", "PLAN"})
    if walk.peek().upper == "FORMAT":
        walk.at += 3
    if walk.peek().upper not in QUERY | _CHANGE and not walk.peek().is_mark("("):
        walk.target()


def _show(walk: Walk) -> None:
    walk.at = 1
    walk.skip({"FULL", "EXTENDED", "GLOBAL", "SESSION"})
    what = walk.peek().upper
    walk.at += 1
    if what in _LISTINGS:  # SHOW TABLES, SHOW TABLE STATUS: [FROM schema]
        walk.skip({"STATUS"})
        if walk.peek().upper in ("FROM", "IN"):
            walk.at += 2
    elif what in _COLUMN_LISTINGS and walk.peek().upper in ("FROM", "IN"):
        walk.at += 1
        schema, table = walk.name()
        if walk.peek().upper in ("FROM", "IN"):
            walk.at += 1
            schema = walk.name()[1]
        walk.found.add((schema, table))
    elif not (what in _OTHER_SHOWS or (what == "CREATE" and walk.peek().upper == "TABLE")):
        raise UnreadableSqlError("an unknown kind of SHOW")
