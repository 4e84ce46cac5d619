"""What migrations are made of. Each step looks first: MySQL commits DDL at once, so a migration that was cut off in the
middle is run again from its beginning.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.engine import Connection


def create_missing(connection: Connection, metadata: sa.MetaData) -> None:
    """Creates each table and index of `metadata` that is not there."""
    for table in metadata.sorted_tables:
        if not sa.inspect(connection).has_table(table.name):
            indexes = set(table.indexes)
            connection.execute(sa.schema.CreateTable(table))
        else:
            present = {index["name"] for index in sa.inspect(connection).get_indexes(table.name)}
            indexes = {index for index in table.indexes if index.name not in present}
        for index in sorted(indexes, key=lambda index: str(index.name)):
            connection.execute(sa.schema.CreateIndex(index))


def add_missing_index(table: str, name: str, columns: list[str]) -> None:
    """Adds the index `name` unless `table` has it."""
    if name not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}:
        op.create_index(name, table, columns)


def add_missing(table: str, *columns: sa.Column[Any]) -> None:
    """Adds each of `columns` that `table` does not have."""
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}
    for column in columns:
        if column.name not in present:
            op.add_column(table, column)
