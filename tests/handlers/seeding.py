"""Mails that have landed, put into the tables directly: for tests that begin where the listener has ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from ops_mail.store import Store, open_store
from ops_mail.store.columns import db_now
from ops_mail.store.schema import cursor, message

MAILBOX = "ops@example.org"
FOLDER = "INBOX"
V1 = 7


def mail_values(uid: int, **changes: Any) -> dict[str, Any]:
    """A row of a small landed mail."""
    return {
        "mailbox": MAILBOX,
        "folder": FOLDER,
        "uid_validity": V1,
        "uid": uid,
        "message_id": f"<{uid}@example.org>",
        "subject": f"mail {uid}",
        "from_name": "Ann",
        "from_addr": "ann@example.org",
        "to_addrs": [{"name": "", "addr": "ops@example.org"}],
        "cc_addrs": [],
        "size_bytes": 1000,
        "raw_sha256": f"{uid:064x}",
        "text_body": f"body of {uid}\n",
        "headers": [["Subject", f"mail {uid}"]],
        "flags": [],
        "defects": [],
        "status": "landed",
        "attempts": 0,
        "crashes": 0,
        "last_error": None,
        **changes,
    }


def seed(url: str, rows: Iterable[dict[str, Any]]) -> None:
    """Insert rows; the tables are made first if they are not there."""
    asyncio.run(_seed(url, list(rows)))


async def seed_store(store: Store, rows: Iterable[dict[str, Any]]) -> None:
    """The same inside a loop, in a store with tables."""
    await _insert(store, list(rows))


def seed_landed(url: str, count: int, first_uid: int = 1) -> None:
    """`count` mails that wait for a handler."""
    seed(url, (mail_values(uid) for uid in range(first_uid, first_uid + count)))


async def _seed(url: str, rows: list[dict[str, Any]]) -> None:
    store = open_store(url, lease_seconds=30)
    try:
        await store.migrate()
        await _insert(store, rows)
    finally:
        await store.close()


async def _insert(store: Store, rows: list[dict[str, Any]]) -> None:
    async with store.engine.begin() as connection:
        now = (await connection.execute(sa.select(db_now()))).scalar_one()
        for mailbox, folder in sorted({(row["mailbox"], row["folder"]) for row in rows}):
            there = sa.select(cursor.c.id).where(cursor.c.mailbox == mailbox, cursor.c.folder == folder)
            if (await connection.execute(there)).first() is None:
                values = {"mailbox": mailbox, "folder": folder, "created_at": now, "updated_at": now}
                await connection.execute(sa.insert(cursor).values(**values))
    for at in range(0, len(rows), 500):
        async with store.engine.begin() as connection:
            some = [{"landed_at": now, "updated_at": now, **row} for row in rows[at : at + 500]]
            await connection.execute(sa.insert(message), some)


def seed_many_done(url: str, count: int) -> None:
    """`count` handled mails, in long statements: a table as it looks after a year. On a database server alone."""
    asyncio.run(_tables(url))
    engine = sa.create_engine(sa.make_url(url).set(drivername="mysql+pymysql"), poolclass=sa.NullPool)
    now = datetime.now(UTC).replace(tzinfo=None)
    row = mail_values(0, folder="Archive", status="done", landed_at=now, updated_at=now, message_id="<done@x>")
    row |= {name: json.dumps(value) for name, value in row.items() if isinstance(value, list)}
    names = [name for name in row if name != "uid"]
    sql = f"INSERT INTO ops_mail_message ({', '.join(names)}, uid) VALUES ({', '.join(['%s'] * (len(names) + 1))})"
    values = tuple(row[name] for name in names)
    with engine.connect() as connection:
        for at in range(0, count, 10_000):
            some = [(*values, uid) for uid in range(at + 1, min(count, at + 10_000) + 1)]
            connection.exec_driver_sql(sql, some)
            connection.commit()


async def _tables(url: str) -> None:
    store = open_store(url, lease_seconds=30)
    try:
        await store.migrate()
    finally:
        await store.close()
