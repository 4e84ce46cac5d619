from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from ops_mail.errors import StoreUnavailable
from ops_mail.store import SchemaStatus, Store, open_store
from ops_mail.store.schema import VERSION_TABLE, metadata

ROOT = Path(__file__).parents[3]


async def test_several_processes_at_once(database_url: str) -> None:
    command = [sys.executable, "-m", "tests.integration.store.migrating", database_url]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert (await asyncio.to_thread(process.stdout.readline)).strip() == "ready"
        answers = await asyncio.gather(*(asyncio.to_thread(process.communicate, "go\n", 90) for process in processes))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    applied = sorted(out.strip().splitlines()[-1] for out, _ in answers)
    assert applied[1:] == ["nothing"] * 3
    assert applied[0].startswith("0001")
    store = open_store(database_url, lease_seconds=5)
    assert (await store.schema_state()).status is SchemaStatus.CURRENT
    await store.close(2)


async def test_the_tables_are_those_the_program_knows(store: Store) -> None:
    def tables(connection: sa.Connection) -> dict[str, object]:
        inspector = sa.inspect(connection)
        return {
            name: (
                {column["name"]: column["nullable"] for column in inspector.get_columns(name)},
                # MySQL shows a unique constraint as an index, too.
                {index["name"] for index in inspector.get_indexes(name) if not index["unique"]},
                {unique["name"] for unique in inspector.get_unique_constraints(name)},
                inspector.get_pk_constraint(name)["constrained_columns"],
            )
            for name in inspector.get_table_names()
            if name != VERSION_TABLE
        }

    async with store.engine.connect() as connection:
        found = await connection.run_sync(tables)
    assert found == {
        table.name: (
            {column.name: column.nullable for column in table.columns},
            {index.name for index in table.indexes},
            {one.name for one in table.constraints if isinstance(one, sa.UniqueConstraint)},
            [column.name for column in table.primary_key.columns],
        )
        for table in metadata.tables.values()
    }


async def test_a_migration_that_was_cut_off_is_finished(database_url: str) -> None:
    store = open_store(database_url, lease_seconds=5)
    async with store.engine.begin() as connection:  # as far as it came: one table, and another without its indexes
        await connection.run_sync(metadata.tables["ops_mail_blob"].create)
        await connection.execute(sa.schema.CreateTable(metadata.tables["ops_mail_audit"]))
    assert (await store.schema_state()).status is SchemaStatus.MISSING
    assert (await store.migrate())[0] == "0001"
    await test_the_tables_are_those_the_program_knows(store)
    await store.close(2)


async def test_a_newer_programs_schema_is_left_alone(store: Store) -> None:
    async with store.engine.begin() as connection:
        await connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    state = await store.schema_state()
    assert (state.status, state.found) == (SchemaStatus.AHEAD, "9999")
    with pytest.raises(StoreUnavailable, match="9999"):
        await store.migrate()


async def test_an_older_schema_is_behind(store: Store) -> None:
    async with store.engine.begin() as connection:
        await connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '0001'"))
    assert (await store.schema_state()).status is SchemaStatus.BEHIND
    assert await store.migrate() != []  # each step finds its work done
    assert (await store.schema_state()).status is SchemaStatus.CURRENT


async def test_sessions_are_strict_and_count_in_utc(server_store: Store) -> None:
    question = (
        "SELECT @@session.sql_mode, @@session.time_zone, @@session.innodb_lock_wait_timeout, @@session.wait_timeout"
    )
    async with server_store.engine.connect() as connection:
        mode, zone, lock_wait, idle = (await connection.execute(sa.text(question))).one()
        limit = "max_statement_time" if connection.dialect.is_mariadb else "max_execution_time"  # type: ignore[attr-defined] # MySQL's
        longest = (await connection.execute(sa.text(f"SELECT @@session.{limit}"))).scalar_one()
    assert "STRICT_ALL_TABLES" in mode
    assert (zone, lock_wait, idle) == ("+00:00", 5, 30)
    assert float(longest) in (60.0, 60_000.0)
