"""The database's URL: which drivers are accepted, and how it is shown."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from ops_mail.settings.redaction import register_secret
from ops_mail.settings.secret import Secret

_DRIVERS = frozenset(
    {
        "sqlite+aiosqlite",
        "mysql+aiomysql",
        "mysql+asyncmy",
        "mariadb+aiomysql",
        "mariadb+asyncmy",
    }
)
_EXAMPLE = "mysql+aiomysql://user:password@host:3306/database or sqlite+aiosqlite:///ops-mail.db"
_ESCAPES = "%40 for @ and %25 for %"


def database_url_problem(url: str) -> str | None:
    """What is wrong with `url`, without showing any of its values; None when nothing is."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return f"is not a database URL; write it like {_EXAMPLE}"
    if parsed.drivername not in _DRIVERS:
        return _driver_problem(parsed)
    if parsed.drivername.startswith("sqlite"):
        if parsed.database in (None, "", ":memory:") or "mode=memory" in url:
            return (
                "is a database in memory, which would lose mails at exit; name a file: sqlite+aiosqlite:///ops-mail.db"
            )
        return None
    if _in_pieces(parsed):
        return f"has more than one @; write {_ESCAPES} in a password"
    if not parsed.database:
        return f"names no database; write it like {_EXAMPLE}"
    return None


def safe_database_url(url: str) -> str:
    """`url` without its password and its options (either may hold a secret)."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return "(not a database URL)"
    if _in_pieces(parsed):
        return "(not a database URL)"
    return parsed.set(query={}).render_as_string(hide_password=True)


class DatabaseUrl(Secret):
    """The database's URL; only what may be secret in it is masked in logs: the password and the options."""

    __slots__ = ()

    def reveal(self) -> str:
        """The URL; a file is read again at each call. Raises SecretError."""
        url = self._read()
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError):
            register_secret(url)  # what it means is unknown, so all of it is hidden
            return url
        if parsed.password:
            register_secret(str(parsed.password))
        if parsed.password or parsed.query:
            register_secret(url)
        return url


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite database; None for another database, or when `url` is none."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return None
    return Path(parsed.database) if parsed.get_backend_name() == "sqlite" and parsed.database else None


def _in_pieces(parsed: URL) -> bool:
    """Whether an @ in the password ended it early: the rest of it would be shown as the host's or database's name."""
    return parsed.get_backend_name() != "sqlite" and ("@" in (parsed.host or "") or "@" in (parsed.database or ""))


def _driver_problem(parsed: URL) -> str:
    dialect = parsed.get_backend_name()
    if dialect in ("mysql", "mariadb"):
        return (
            f"uses {parsed.drivername}, which is not an asynchronous driver; "
            f"write {dialect}+aiomysql://… (or {dialect}+asyncmy://…)"
        )
    if dialect == "sqlite":
        return f"uses {parsed.drivername}, which is not an asynchronous driver; write sqlite+aiosqlite:///…"
    return f"is not for MySQL, MariaDB or SQLite; write it like {_EXAMPLE}"
