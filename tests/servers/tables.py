"""Looking into the tables from a test, synchronously and past the product's own code."""

from __future__ import annotations

from collections import Counter
from typing import Any

import sqlalchemy as sa


class Tables:
    """Reads and writes a database by its asynchronous URL, one connection a call."""

    def __init__(self, url: str) -> None:
        synchronous = sa.make_url(url)
        driver = "sqlite" if synchronous.get_backend_name() == "sqlite" else "mysql+pymysql"
        self._engine = sa.create_engine(synchronous.set(drivername=driver), poolclass=sa.NullPool)

    def rows(self, sql: str, **values: object) -> list[dict[str, Any]]:
        with self._engine.connect() as connection:
            return [dict(row._mapping) for row in connection.execute(sa.text(sql), values)]

    def value(self, sql: str, **values: object) -> Any:
        with self._engine.connect() as connection:
            return connection.execute(sa.text(sql), values).scalar()

    def execute(self, sql: str, **values: object) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.text(sql), values)

    def hashes(self) -> Counter[str]:
        """How many rows hold each raw content; none before the tables are there."""
        if not self.exist():
            return Counter()
        return Counter(row["raw_sha256"] for row in self.rows("SELECT raw_sha256 FROM ops_mail_message"))

    def count(self) -> int:
        """How many mails have a row."""
        return int(self.value("SELECT COUNT(*) FROM ops_mail_message")) if self.exist() else 0

    def exist(self) -> bool:
        """Has a migration been here?"""
        return sa.inspect(self._engine).has_table("ops_mail_message")

    def count_of(self, table: str) -> int:
        return int(self.value(f"SELECT COUNT(*) FROM {table}"))

    def cursor(self) -> dict[str, Any]:
        (row,) = self.rows("SELECT * FROM ops_mail_cursor")
        return row
