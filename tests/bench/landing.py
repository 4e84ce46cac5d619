"""How many mails a second land, against plain multi-row INSERTs of the same columns by the same drivers.

Run it: `python -m tests.bench.landing [mails]`. It starts its own servers; the figures are of this machine alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import aiomysql
import pymysql
import sqlalchemy as sa

from ops_mail.core.ids import Uid
from ops_mail.core.mail import Address, ParsedMail, PreparedMail
from ops_mail.store import Guard, open_store
from ops_mail.store.rows import RowLimits, mail_row
from tests.integration.store.samples import KEY, NOW, V1, batch, mail
from tests.servers.mariadb import MariaDb
from tests.servers.mysql import MySql
from tests.servers.process import SqlServer

BATCH = 200
WORDS = ("order", "invoice", "please", "find", "attached", "regards", "delivery", "customer", "grüße", "2024", "thanks")


def sample(uid: int, noise: random.Random) -> PreparedMail:
    """A mail of about 4 KB as they come: headers, a text that compresses like one."""
    text = " ".join(noise.choices(WORDS, k=400)) + f"\r\n{noise.random()}"
    headers = tuple((f"X-Header-{n}", " ".join(noise.choices(WORDS, k=6))) for n in range(15))
    parsed = ParsedMail(
        message_id=f"<{uid}@example.org>",
        subject=" ".join(noise.choices(WORDS, k=6)),
        from_name="Someone",
        from_addr="someone@example.org",
        to_addrs=(Address("Post", "post@example.org"),),
        text_body=text,
        headers=headers,
    )
    raw = "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n" + text
    return mail(uid, raw=raw.encode(), parsed=parsed)


async def product(url: str, mails: Sequence[PreparedMail]) -> float:
    """Seconds that the store takes, in batches of 200."""
    store = open_store(url, lease_seconds=30)
    await store.migrate()
    guard = Guard(store, "bench:1:a", 30)
    lease = await guard.try_acquire(KEY)
    assert lease is not None
    await store.start_cursor(lease, V1, Uid(0), Uid(0))
    await store.land(lease, batch(mails[:1]))
    began = time.perf_counter()
    for at in range(1, len(mails), BATCH):
        await store.land(lease, batch(mails[at : at + BATCH]))
    took = time.perf_counter() - began
    await guard.close()
    await store.close(2)
    return took


def raw_rows(mails: Sequence[PreparedMail]) -> tuple[str, list[tuple[Any, ...]], str, list[tuple[Any, ...]]]:
    """The same values for plain statements: (message statement, its rows, chunk statement, its rows)."""
    from ops_mail.store.engine import _dump_json

    rows = [mail_row(KEY, V1, one, RowLimits(), NOW).values for one in mails]
    names = list(rows[0])
    values = [
        tuple(
            _dump_json(v) if isinstance(v, list) else v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v
            for v in row.values()
        )
        for row in rows
    ]
    statement = f"INSERT INTO ops_mail_message ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"
    chunks = [(one.sha256, 0, one.chunks[0]) for item in mails for one in item.blobs if isinstance(one.chunks, tuple)]
    return statement, values, "INSERT INTO ops_mail_blob_chunk (sha256, seq, data) VALUES (%s, %s, %s)", chunks


def account(url: str) -> dict[str, Any]:
    """The URL as a driver's arguments."""
    parsed = sa.make_url(url)
    return {
        "host": parsed.host,
        "port": parsed.port,
        "user": parsed.username,
        "password": parsed.password,
        "db": parsed.database,
    }


async def plain_aiomysql(url: str, mails: Sequence[PreparedMail]) -> float:
    """Two multi-row INSERTs and a COMMIT a batch; nothing is checked, fenced or deduplicated."""
    await _migrate(url)
    message, rows, chunk, chunks = raw_rows(mails)
    connection = await aiomysql.connect(**account(url), charset="utf8mb4")
    began = time.perf_counter()
    async with connection.cursor() as cursor:
        for at in range(0, len(mails), BATCH):
            await cursor.executemany(message, rows[at : at + BATCH])
            await cursor.executemany(chunk, chunks[at : at + BATCH])
            await connection.commit()
    took = time.perf_counter() - began
    await connection.ensure_closed()
    return took


async def plain_pymysql(url: str, mails: Sequence[PreparedMail]) -> float:
    """The same, synchronously."""
    await _migrate(url)
    message, rows, chunk, chunks = raw_rows(mails)
    with pymysql.connect(**account(url), charset="utf8mb4") as connection, connection.cursor() as cursor:
        began = time.perf_counter()
        for at in range(0, len(mails), BATCH):
            cursor.executemany(message, rows[at : at + BATCH])
            cursor.executemany(chunk, chunks[at : at + BATCH])
            connection.commit()
        return time.perf_counter() - began


async def _migrate(url: str) -> None:
    store = open_store(url, lease_seconds=30)
    await store.migrate()
    await store.close(2)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mails", nargs="?", type=int, default=4000, help="how many (default: 4000)")
    count: int = parser.parse_args().mails
    noise = random.Random(4)
    mails = [sample(uid, noise) for uid in range(1, count + 1)]
    size = sum(one.raw_size_bytes for one in mails) // count
    print(f"{count} mails of {size} bytes on average, {BATCH} a batch; load {os.getloadavg()[0]:.1f}")

    def measure(name: str, run: Callable[[str, Sequence[PreparedMail]], Awaitable[float]], url: str) -> None:
        began = time.process_time()
        took = asyncio.run(_awaited(run(url, mails)))
        print(f"  {name:<38} {count / took:8.0f} mails/s   {(time.process_time() - began):5.1f} s CPU here")

    servers: tuple[type[SqlServer], ...] = (MariaDb, MySql)
    for kind in servers:
        server = kind()
        server.start()
        try:
            print(kind.__name__)
            measure("the store, aiomysql", product, server.create_database())
            measure("the store, asyncmy", product, server.create_database().replace("aiomysql", "asyncmy"))
            measure("plain INSERTs, aiomysql", plain_aiomysql, server.create_database())
            measure("plain INSERTs, PyMySQL", plain_pymysql, server.create_database())
        finally:
            server.stop()
    with tempfile.TemporaryDirectory() as folder:
        print("SQLite")
        measure("the store, aiosqlite", product, f"sqlite+aiosqlite:///{Path(folder) / 'bench.db'}")


async def _awaited(seconds: Awaitable[float]) -> float:
    return await seconds


if __name__ == "__main__":
    main()
