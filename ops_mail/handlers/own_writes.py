"""The statements that a handler returns in `Done`: checked and copied where the handler runs.

So nothing of its objects is touched later, on the main loop, where a surprise would be everybody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

from ops_mail.core.handler_sql import handler_sql_problem
from ops_mail.handlers.answers import Write

MAX_BYTES = 8 * 1024 * 1024
"""Statements and values of one mail together: the main loop makes packets of them. Characters count as bytes."""

_VALUES = (str, bytes, bytearray, int, float, Decimal, datetime, date, time, timedelta, UUID, type(None))


class WrongWritesError(ValueError):
    """The writes cannot be what they should be; the message is for the handler's author."""


def checked_writes(writes: object) -> tuple[Write, ...]:
    """The same, copied. Raises WrongWritesError, or whatever an odd class of the handler's own raises."""
    if not isinstance(writes, (list, tuple)):
        raise WrongWritesError(f"Done.writes must be a list of Write, not {type(writes).__name__}")
    checked = tuple(_checked(write) for write in writes)
    size = sum(len(write.sql) + sum(map(_size, write.parameters.values())) for write in checked)
    if size > MAX_BYTES:
        raise WrongWritesError(f"Done.writes are too large: {size} bytes, at most {MAX_BYTES} for one mail")
    return checked


def _size(value: object) -> int:
    return len(value) if isinstance(value, (str, bytes, bytearray)) else 8


def _checked(write: object) -> Write:
    sql: object = write.sql if isinstance(write, Write) else None
    given: object = write.parameters if isinstance(write, Write) else None
    if not isinstance(sql, str) or not isinstance(given, Mapping):
        raise WrongWritesError("Done.writes must hold Write(sql, {name: value}) and nothing else")
    sql, parameters = str(sql), dict(given)
    problem = handler_sql_problem(sql)
    if problem is not None:
        raise WrongWritesError(f"a statement in Done.writes was refused: {problem}")
    for name, value in parameters.items():
        if not isinstance(name, str):
            raise WrongWritesError(f"a parameter of a statement has no text as its name: {type(name).__name__}")
        if not isinstance(value, _VALUES):
            raise WrongWritesError(
                f"parameter {name[:64]!r} of a statement is a {type(value).__name__}; it must be text, bytes, a number,"
                " a date or time, or None (json.dumps makes text of lists and dicts)"
            )
    return Write(sql, parameters)
