"""The database as commands use it: opened once, closed in any case, and never made by a command that only looks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ops_mail.errors import StoreUnavailable
from ops_mail.settings import Settings
from ops_mail.settings.database_url import sqlite_file
from ops_mail.store import Store, open_store
from ops_mail.store.blob_choice import keep_contents_in

_CLOSE_SECONDS = 2.0


@asynccontextmanager
async def opened_store(settings: Settings, *, create: bool = False, contents: bool = True) -> AsyncIterator[Store]:
    """The store. Without `create` a SQLite file that is not there raises StoreUnavailable instead of being made.

    Without `contents` the place that OPS_MAIL_STORE_URL names is not looked at. Raises ConfigError for one that cannot
    be used.
    """
    if not create and (file := missing_sqlite_file(settings)) is not None:
        where = "" if file.is_absolute() else f" in {Path.cwd()}, where settings are read from .env"
        raise StoreUnavailable(f"there is no database {file} yet{where}: run `ops-mail migrate` (or `ops-mail run`)")
    store = open_store(
        settings.store.database_url.reveal(),
        lease_seconds=settings.store.lease_seconds,
        forbidden_tables=settings.store.forbidden_tables,
    )
    if contents:
        keep_contents_in(store, settings.store.store_url)
    try:
        yield store
    finally:
        await store.close(_CLOSE_SECONDS)


def missing_sqlite_file(settings: Settings) -> Path | None:
    """The SQLite file when the database is one that does not exist; connecting would create it."""
    file = sqlite_file(settings.store.database_url.reveal())
    return file if file is not None and not file.exists() else None
