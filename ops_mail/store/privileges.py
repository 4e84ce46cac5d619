"""What the account may do, read from its grants: nothing is tried out on a table."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.grants import Grants, read_grants
from ops_mail.store.database import Database
from ops_mail.store.model import PrivilegeReport
from ops_mail.store.schema import VERSION_TABLE, metadata

_WRITES = ("INSERT", "UPDATE", "DELETE", "DROP", "ALTER")
_NEEDED = ("SELECT", "INSERT", "UPDATE", "DELETE")
_NEEDED_FOR_MIGRATE = ("CREATE", "ALTER", "INDEX")


async def read_privileges(database: Database, forbidden_tables: tuple[str, ...]) -> PrivilegeReport:
    """What the account may and should not, or should and may not. SQLite has no accounts: its report is empty.

    A forbidden table counts where it exists; `schema.table` names one of another schema.
    """
    if not database.mysql:
        return PrivilegeReport()
    async with database.reading("reading the account's privileges") as connection:
        schema = str((await connection.execute(sa.text("SELECT DATABASE()"))).scalar_one())
        grants = read_grants(await _lines(connection))
        forbidden = await _existing(connection, schema, forbidden_tables)
    own = [(schema, table.name) for table in metadata.sorted_tables]
    return PrivilegeReport(
        forbidden=tuple(
            f"{privilege} on {table}"
            for where, table in forbidden
            for privilege in _WRITES
            if grants.allows(privilege, where, table)
        ),
        missing=_missing(grants, _NEEDED, own),
        missing_for_migrate=_missing(grants, _NEEDED_FOR_MIGRATE, [*own, (schema, VERSION_TABLE)]),
        complete=grants.complete,
    )


def _missing(grants: Grants, privileges: Iterable[str], tables: list[tuple[str, str]]) -> tuple[str, ...]:
    found: list[str] = []
    for privilege in privileges:
        lacking = [table for schema, table in tables if not grants.allows(privilege, schema, table)]
        found += [f"{privilege} on {table}" for table in (["ops_mail_*"] if len(lacking) == len(tables) else lacking)]
    return tuple(found)


async def _lines(connection: AsyncConnection) -> list[str]:
    """The account's own grants and those of the roles that are active in this session."""
    lines = list((await connection.execute(sa.text("SHOW GRANTS"))).scalars())
    role = (await connection.execute(sa.text("SELECT CURRENT_ROLE()"))).scalar()
    if role is not None and role != "NONE":
        # MariaDB has one active role and a statement for it; MySQL has several, named in full.
        is_mariadb = getattr(connection.dialect, "is_mariadb", False)
        more = "SHOW GRANTS FOR CURRENT_ROLE" if is_mariadb else f"SHOW GRANTS FOR CURRENT_USER() USING {role}"
        lines += (await connection.execute(sa.text(more))).scalars()
    return [str(line) for line in lines]


async def _existing(connection: AsyncConnection, schema: str, names: tuple[str, ...]) -> list[tuple[str, str]]:
    wanted = [tuple(name.split(".", 1)) if "." in name else (schema, name) for name in names]
    found: list[tuple[str, str]] = []
    for where, table in wanted:
        exists = sa.text("SELECT 1 FROM information_schema.tables WHERE table_schema = :schema AND table_name = :name")
        if (await connection.execute(exists, {"schema": where, "name": table})).first() is not None:
            found.append((where, table))
    return found
