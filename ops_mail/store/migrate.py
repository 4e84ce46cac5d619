"""Applying the migrations, by one process at a time, and telling where the schema stands.

Alembic takes a quarter of a second to load, and a schema that is current needs none of it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import sqlalchemy as sa
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
REVISIONS = ("0001", "0002", "0003", "0004")
"""Those of the folder `migrations`, in their order; the last one is what this program wants."""


async def migrate(database: Database) -> list[str]:
    """Brings the schema to this program's revision; returns the revisions applied, oldest first.

    Raises StoreUnavailable, also when another process migrates for longer than two minutes.
    """
    engine = database.lone_engine(idle_seconds=LONG_IDLE_SECONDS, lock_wait_seconds=LOCK_WAIT_SECONDS)
    try:
        async with edge("migrating", MIGRATE_SECONDS), engine.connect() as one, _alone(database, one) as connection:
            found = await connection.run_sync(_found)
            if found == REVISIONS[-1]:
                return []
            if found is not None and found not in REVISIONS:
                raise StoreUnavailable(f"migrating: the database is at revision {found}, unknown to this program")
            apply = await asyncio.to_thread(_load_apply)  # the loop goes on meanwhile
            await connection.run_sync(apply)
            return list(REVISIONS if found is None else REVISIONS[REVISIONS.index(found) + 1 :])
    finally:
        if not is_memory(database.url):
            await engine.dispose()


async def schema_state(database: Database) -> SchemaState:
    """Compares the revision in the database with the newest of this program."""
    async with database.reading("reading the schema's revision") as connection:
        found = await connection.run_sync(_found)
    wanted = REVISIONS[-1]
    if found is None:
        return SchemaState(SchemaStatus.MISSING, None, wanted)
    if found == wanted:
        return SchemaState(SchemaStatus.CURRENT, found, wanted)
    status = SchemaStatus.BEHIND if found in REVISIONS else SchemaStatus.AHEAD
    return SchemaState(status, found, wanted)


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


def _load_apply() -> Callable[[Connection], None]:
    from ops_mail.store.migrations.apply import apply  # noqa: PLC0415 - loads alembic

    return apply


def _found(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608 - a constant
