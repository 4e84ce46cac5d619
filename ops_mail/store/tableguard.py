"""The engine refuses every statement that names a table outside `ops_*` (promise P8)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Engine, event

from ops_mail.core.sqlnames import UnreadableSqlError, tables_named
from ops_mail.errors import ForbiddenTable, UnreadableStatement

PREFIX = "ops_"
SEEN_ONCE = "ops_mail_seen_once"
"""The execution option of a statement whose text will hardly come again: what is found in it is not remembered."""
CATALOGUE_SCHEMAS = frozenset({"information_schema"})
CATALOGUE_TABLES = frozenset({"sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema"})


def install_table_guard(engine: Engine) -> None:
    """From now on `engine` raises ForbiddenTable instead of sending a statement that names a foreign table.

    Of a statement that cannot be understood it raises UnreadableStatement, which is one, too.
    """
    own_schema = engine.url.database if engine.dialect.name != "sqlite" else "main"

    @event.listens_for(engine, "before_cursor_execute")
    def refuse(_connection: Any, _cursor: Any, statement: str, _values: Any, context: Any, _many: bool) -> None:
        seen_once = context is not None and context.execution_options.get(SEEN_ONCE)
        problem = (problem_of.__wrapped__ if seen_once else problem_of)(statement, own_schema)
        if problem is not None:
            kind = UnreadableStatement if problem.unreadable else ForbiddenTable
            raise kind(problem.text)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a statement is refused. `unreadable`: not for a table that it names, but because that cannot be told."""

    text: str
    unreadable: bool


@lru_cache(maxsize=2048)
def problem_of(statement: str, own_schema: str | None = None) -> Problem | None:
    """Why the statement is refused; None if it is not. Never repeats the statement: literals in it may be a mail's."""
    try:
        names = tables_named(statement)
    except UnreadableSqlError as error:
        return Problem(f"the statement was not sent, it could not be understood: {error}", unreadable=True)
    for schema, table in sorted(names, key=str):
        if schema is not None and schema.lower() in CATALOGUE_SCHEMAS:
            continue
        if schema is None and table.lower() in CATALOGUE_TABLES:
            continue
        if schema not in (None, own_schema) or not table.startswith(PREFIX):
            shown = table if schema is None else f"{schema}.{table}"
            text = f"a statement names the table {shown!r}; ops-mail uses its own tables only ({PREFIX}*)"
            return Problem(text, unreadable=False)
    return None
