"""Where the drivers' errors and silences become this package's errors: once, here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import sqlalchemy.exc as sa_exc

from ops_mail.errors import StoreError, StoreRefused, StoreUnavailable

STATEMENT_SECONDS = 15.0
"""How long one ordinary call may take, connecting included."""

LANDING_SECONDS = 120.0
"""How long one landing transaction may take: a 50 MB mail over a slow line."""

DUPLICATE = 1062
_DEADLOCK = 1213
_LOCK_WAIT = 1205
# Gone or going (2xxx, 1053, 1077 to 1080, 1927), too many connections, killed, disk or table full, read-only, too slow.
_ENVIRONMENT = {1021, 1028, 1037, 1040, 1041, 1053, *range(1077, 1081), 1114, 1203, 1226, 1290, 1317, 1792, 1836, 1927}
_ENVIRONMENT |= {1969, 3024, *range(2000, 2062)}
_NO_TABLE = 1146
# Why nobody gets in. A server tells an account that has no rights on a database the same whether it is there or not.
_NO_WAY_IN = {
    1044: "the account may not use this database, or there is none of this name",
    1045: "the database refused the login",
    1049: "there is no database of this name",
    1698: "the database refused the login",
    2002: "the database cannot be reached",
    2003: "the database cannot be reached",
    2005: "the database cannot be reached",
}
_DENIED = {1142, 1143, 1227, 1370, 1410}
# The data's fault, although the drivers call most of them OperationalError: bad JSON (3140 to 3158), a CHECK that
# failed (3819 MySQL, 4025 MariaDB), wrong or overlong values, a packet that no setting of ours can make smaller.
_REFUSED = {
    *(1048, 1118, 1153, 1264, 1265, 1292, 1301, 1364, 1366, 1406, 1411, 1441, 1690, 3819, 4025),
    *range(3140, 3159),
}


def error_code(error: BaseException) -> int | None:
    """The server's error number, if it gave one."""
    origin = getattr(error, "orig", error)
    # SQLAlchemy's asyncio layer may wrap the driver's error once more.
    args = getattr(origin, "args", ()) or getattr(getattr(origin, "__cause__", None), "args", ())
    return args[0] if args and isinstance(args[0], int) else None


def is_duplicate(error: BaseException) -> bool:
    """Whether a unique key was violated."""
    return isinstance(error, sa_exc.IntegrityError) and (
        error_code(error) == DUPLICATE or "UNIQUE constraint failed" in str(error.orig)
    )


def is_environment(error: sa_exc.DBAPIError) -> bool:
    """Whether the server itself is the trouble (gone, full, read-only, too slow), and not the statement."""
    text = str(error.orig).lower()
    return (
        error.connection_invalidated
        or error_code(error) in _ENVIRONMENT
        or any(words in text for words in ("disk i/o error", "disk is full", "readonly database", "unable to open"))
    )


def is_contention(error: BaseException) -> bool:
    """Whether the very same transaction may succeed when it is simply run again."""
    if not isinstance(error, sa_exc.DBAPIError):
        return False
    text = str(error.orig)
    return error_code(error) in (_DEADLOCK, _LOCK_WAIT) or "database is locked" in text or is_duplicate(error)


def translate(error: BaseException, what: str) -> StoreError | None:
    """The store's error for a library's one; None if it is none of ours to translate."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, sa_exc.DBAPIError):
        return _translate_dbapi(error, what)
    if isinstance(error, sa_exc.StatementError | UnicodeError | OverflowError):
        return StoreRefused(f"{what}: the data does not fit the table ({first_line(error)})")
    if isinstance(error, sa_exc.SQLAlchemyError | OSError | EOFError):
        return StoreUnavailable(f"{what}: {first_line(error)}")
    return None


def _translate_dbapi(error: sa_exc.DBAPIError, what: str) -> StoreError:
    code, text = error_code(error), first_line(error.orig or error)
    if code in _REFUSED:
        return StoreRefused(f"{what}: the database refused the data ({text})")
    if code == _NO_TABLE or "no such table" in text:
        return StoreUnavailable(f"{what}: a table is missing, run `ops-mail migrate` ({text})")
    if code in _NO_WAY_IN:
        return StoreUnavailable(f"{what}: {_NO_WAY_IN[code]}, check OPS_MAIL_DATABASE_URL ({text})")
    if code in _DENIED:
        return StoreUnavailable(f"{what}: the account may not do this, see `ops-mail check` ({text})")
    if isinstance(error, sa_exc.IntegrityError | sa_exc.DataError) or "too big" in text:
        return StoreRefused(f"{what}: the database refused the data ({text})")
    return StoreUnavailable(f"{what}: {text}")


def first_line(error: BaseException) -> str:
    """What the database said, without the statement and its values."""
    # Never str() of a SQLAlchemy error as a whole: it repeats the statement with its values, which are mails.
    origin = getattr(error, "orig", None) or error
    text = str(origin).strip() or type(origin).__name__
    return text.splitlines()[0][:300]


@asynccontextmanager
async def edge(what: str, limit_seconds: float = STATEMENT_SECONDS) -> AsyncIterator[None]:
    """Bounds what happens inside and raises StoreUnavailable, StoreRefused or another StoreError for what fails.

    Cancellation passes. On a timeout the statement was cancelled, so SQLAlchemy has already invalidated its connection.
    """
    limit = asyncio.timeout(limit_seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if limit.expired():
            raise StoreUnavailable(f"{what}: no answer from the database within {limit_seconds:g} s") from error
        raise StoreUnavailable(f"{what}: {first_line(error)}") from error
    except (sa_exc.SQLAlchemyError, OSError, EOFError, UnicodeError, OverflowError) as error:
        translated = translate(error, what)
        assert translated is not None  # noqa: S101 - each class named above has a translation
        raise translated from error
