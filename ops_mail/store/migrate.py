"""Applying the migrations, by one process at a time, and telling where the schema stands."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.errors import StoreUnavailable
from ops_mail.store.database import LONG_IDLE_SECONDS, Database
from ops_mail.store.edge import edge
from ops_mail.store.engine import is_memory
from ops_mail.store.model import SchemaState, SchemaStatus
from ops_mail.store.schema import VERSION_TABLE

MIGRATE_SECONDS = 3600.0
LOCK_WAIT_SECONDS = 120
_FOLDER = Path(__file__).parent / "migrations"


async def migrate(database: Database) -> list[str]:
    """Brings the schema to this program's revision; returns the revisions applied, oldest first.

    Raises StoreUnavailable, also when another process migrates for longer than two minutes.
    """
    engine = database.lone_engine(idle_seconds=LONG_IDLE_SECONDS, lock_wait_seconds=LOCK_WAIT_SECONDS)
    try:
        async with edge("migrating", MIGRATE_SECONDS), engine.connect() as one, _alone(database, one) as connection:
            return await connection.run_sync(_upgrade)
    finally:
        if not is_memory(database.url):
            await engine.dispose()


async def schema_state(database: Database) -> SchemaState:
    """Compares the revision in the database with the newest of this program."""
    async with database.reading("reading the schema's revision") as connection:
        found = await connection.run_sync(_found)
    scripts = ScriptDirectory.from_config(_config())
    wanted = scripts.get_current_head() or ""
    if found is None:
        return SchemaState(SchemaStatus.MISSING, None, wanted)
    if found == wanted:
        return SchemaState(SchemaStatus.CURRENT, found, wanted)
    try:
        scripts.get_revision(found)
    except CommandError:
        return SchemaState(SchemaStatus.AHEAD, found, wanted)
    return SchemaState(SchemaStatus.BEHIND, found, wanted)


@asynccontextmanager
async def _alone(database: Database, connection: AsyncConnection) -> AsyncIterator[AsyncConnection]:
    """SQLite: one exclusive transaction around everything. MySQL: a named lock on this very connection."""
    if not database.mysql:
        connection = await connection.execution_options(sqlite_begin="EXCLUSIVE")
        async with connection.begin():
            yield connection
        return
    schema = (await connection.execute(sa.text("SELECT DATABASE()"))).scalar_one()
    name = f"ops_mail:migrate:{hashlib.sha256(str(schema).encode()).hexdigest()[:32]}"
    got = await connection.execute(sa.text("SELECT GET_LOCK(:name, :wait)"), {"name": name, "wait": LOCK_WAIT_SECONDS})
    if got.scalar() != 1:
        raise StoreUnavailable(f"migrating: another process has been at it for {LOCK_WAIT_SECONDS} s")
    try:
        yield connection
    finally:
        await connection.execute(sa.text("SELECT RELEASE_LOCK(:name)"), {"name": name})


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config


def _found(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608 - a constant


def _upgrade(connection: Connection) -> list[str]:
    config = _config()
    scripts = ScriptDirectory.from_config(config)
    before = _found(connection)
    if before == scripts.get_current_head():
        return []
    try:
        scripts.get_revision(before or "head")  # says so by a CommandError if it is unknown
        due = [script.revision for script in scripts.iterate_revisions("head", before or "base")]
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    except CommandError as error:
        raise StoreUnavailable(f"migrating: the database is at revision {before}, unknown to this program") from error
    return [revision for revision in reversed(due) if revision != before]
