"""Which statements a handler may add to the transaction that marks its mail as done.

That transaction is all or nothing, on a connection that others use afterwards. So nothing that ends it (COMMIT; CREATE,
DROP and TRUNCATE do so unasked), nothing that outlives it (SET, LOCK TABLES, GET_LOCK), and nothing that changes what
ops-mail itself relies on. Foreign tables are the engine's guard's business, as in every statement.
"""

from __future__ import annotations

from ops_mail.core.sqlnames import UnreadableSqlError, read_statement
from ops_mail.core.sqltokens import Kind

MAX_SQL_CHARS = 128 * 1024
"""Reading a statement keeps the event loop; a longer one has its values in it instead of beside it."""

OWN_PREFIX = "ops_mail_"
_ALLOWED = ("INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "WITH")
_LOCK_FUNCTIONS = {"GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "SERVICE_GET_WRITE_LOCKS", "SERVICE_GET_READ_LOCKS"}


def handler_sql_problem(sql: str) -> str | None:
    """Why a handler may not have this statement executed; None if it may."""
    if len(sql) > MAX_SQL_CHARS:
        return f"it is longer than {MAX_SQL_CHARS} characters; give values as parameters (:name)"
    try:
        statement = read_statement(sql)
    except UnreadableSqlError as error:
        return f"it could not be understood: {error}"
    if statement.head not in _ALLOWED:
        return (
            f"{statement.head[:20] or 'one that begins with no word'} is none of INSERT, REPLACE, UPDATE, DELETE and"
            " SELECT; anything else may end the transaction that marks the mail as done, or outlive it"
        )
    if any(
        token.kind in (Kind.WORD, Kind.NAME) and token.text.upper() in _LOCK_FUNCTIONS for token in statement.tokens
    ):
        return "it takes or frees a lock of the server, which outlives the transaction"
    own = sorted(table for _, table in statement.changed if table.lower().startswith(OWN_PREFIX))
    if own:
        return f"it changes the table {own[0][:64]!r}; those of ops-mail itself ({OWN_PREFIX}*) can only be read"
    return None
