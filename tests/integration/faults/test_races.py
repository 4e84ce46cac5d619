"""Several instances at once: from the very start, on an empty database, and restarted in turn under load."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.faults.harness import FAST, running
from tests.integration.faults.databases import hashes, mail
from tests.integration.listener.settings import plain_settings
from tests.servers.dovecot import Dovecot
from tests.servers.fixtures import *  # noqa: F403 - fixtures are found by name
from tests.servers.mariadb import MariaDb
from tests.servers.process import SqlServer
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

BACKLOG = 300


@pytest.mark.parametrize("instances", [2, 3])
async def test_instances_that_start_together_on_an_empty_database_land_each_mail_once(
    instances: int, sql_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    """Migrations, the cursor's first row and the guard are all raced for."""
    user, url = new_user(), sql_server.create_database()
    tables = Tables(url)
    dovecot.append_many(user, "INBOX", [mail(number) for number in range(BACKLOG)])
    settings = plain_settings(dovecot.port, dovecot, user, url, IDLE_SECONDS=60)
    async with AsyncExitStack() as stack:
        starting = [running(settings, INSTANCE_NAME=f"i{number}") for number in range(instances)]
        apps = await asyncio.gather(*(stack.enter_async_context(one) for one in starting))
        await apps[0].until(lambda: tables.count() >= BACKLOG, "all rows")
        await apps[0].until(lambda: sum(app.mailbox.state.value == "idling" for app in apps) == 1, "one leader")
        await apps[0].until(
            lambda: sum(app.mailbox.standby_seen_mono is not None for app in apps) >= instances - 1,
            "the others standing by",
        )
        codes = [(await app.get("/readyz"))[0] for app in apps]
        assert codes == [200] * instances
        assert sum(len(app.landed) for app in apps) == BACKLOG
    assert tables.hashes() == hashes(range(BACKLOG))
    assert tables.count_of("ops_mail_cursor") == 1


async def test_processes_restarted_in_turn_while_mails_keep_arriving(
    dovecot: Dovecot, mariadb: MariaDb, new_user: Callable[[], str], tmp_path: Path
) -> None:
    """Real processes and SIGTERM, as a deployment does it."""
    user, url = new_user(), mariadb.create_database()
    tables = Tables(url)
    settings = FAST | plain_settings(dovecot.port, dovecot, user, url, IDLE_SECONDS=60)
    sent, over = 0, asyncio.Event()

    async def keep_sending() -> None:
        nonlocal sent
        while not over.is_set():
            await asyncio.to_thread(dovecot.append_many, user, "INBOX", [mail(sent), mail(sent + 1)])
            sent += 2
            await asyncio.sleep(0.05)

    lives = itertools.count()

    def start() -> OpsMail:
        return OpsMail(tmp_path, settings, name=f"life{next(lives)}").start()

    running_now: list[OpsMail] = []
    sending = asyncio.create_task(keep_sending())
    try:
        running_now = [await asyncio.to_thread(start), await asyncio.to_thread(start)]
        for _ in range(3):
            oldest = running_now.pop(0)
            try:
                assert await asyncio.to_thread(oldest.terminate) == 0
            finally:
                oldest.close()
            running_now.append(await asyncio.to_thread(start))
            await asyncio.to_thread(running_now[-1].wait_ready)
        over.set()
        await sending
        await asyncio.to_thread(running_now[0].wait_until, lambda: tables.count() >= sent, "all rows")
        for product in running_now:
            assert await asyncio.to_thread(product.terminate) == 0
    finally:
        over.set()
        await sending
        for product in running_now:
            product.close()
    assert sent > 20
    assert tables.hashes() == hashes(range(sent))


async def test_two_processes_on_one_sqlite_file_land_each_mail_once(
    dovecot: Dovecot, new_user: Callable[[], str], tmp_path: Path
) -> None:
    user, url = new_user(), f"sqlite+aiosqlite:///{tmp_path}/mail.db"
    tables = Tables(url)
    dovecot.append_many(user, "INBOX", [mail(number) for number in range(BACKLOG)])
    settings = plain_settings(dovecot.port, dovecot, user, url, IDLE_SECONDS=60)
    with OpsMail(tmp_path / "a", FAST | settings, name="a") as first:
        async with running(settings, INSTANCE_NAME="b") as app:
            await app.until(lambda: tables.count() >= BACKLOG, "all rows", 40)
            await asyncio.to_thread(first.kill)  # whoever leads
            dovecot.append(user, "INBOX", mail(BACKLOG))
            await app.until(lambda: tables.count() >= BACKLOG + 1, "the next mail")
    assert tables.hashes() == hashes(range(BACKLOG + 1))


@pytest.mark.parametrize("seconds_into_the_landing", [0.0, 0.01, 0.03])
async def test_a_process_killed_while_it_writes_to_sqlite(
    seconds_into_the_landing: float, dovecot: Dovecot, new_user: Callable[[], str], tmp_path: Path
) -> None:
    """A write lock of the killed process is gone with it, and its half-written transaction too."""
    user, url = new_user(), f"sqlite+aiosqlite:///{tmp_path}/mail.db"
    tables = Tables(url)
    dovecot.append_many(user, "INBOX", [mail(number) for number in range(BACKLOG)])
    settings = plain_settings(dovecot.port, dovecot, user, url, IDLE_SECONDS=60)
    product = OpsMail(tmp_path / "killed", FAST | settings, name="killed")
    try:
        product.launch()
        await asyncio.to_thread(product.wait_for_line, "folder_first_read")
        await asyncio.sleep(seconds_into_the_landing)
        product.kill()
    finally:
        product.close()
    assert tables.count() in range(BACKLOG + 1)
    async with running(settings, INSTANCE_NAME="next") as app:
        await app.until(lambda: tables.count() >= BACKLOG, "all rows", 30)
        await app.until_state("idling")
    assert tables.hashes() == hashes(range(BACKLOG))


async def test_a_sqlite_file_locked_by_somebody_else_is_waited_for(
    dovecot: Dovecot, new_user: Callable[[], str], tmp_path: Path
) -> None:
    """Longer than the five seconds that a statement waits."""
    user, path = new_user(), tmp_path / "mail.db"
    url = f"sqlite+aiosqlite:///{path}"
    tables = Tables(url)
    settings = plain_settings(dovecot.port, dovecot, user, url, IDLE_SECONDS=60)
    async with running(settings) as app:
        await app.until_state("idling")
        other = sqlite3.connect(path, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            dovecot.append(user, "INBOX", mail(0))
            await asyncio.sleep(7)
            assert tables.count() == 0
            assert (await app.get("/healthz"))[0] == 200
            other.execute("ROLLBACK")
        finally:
            other.close()
        await app.until(lambda: tables.count() == 1, "the mail", 30)
        await app.until_state("idling")
    assert tables.hashes() == hashes([0])
