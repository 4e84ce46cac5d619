"""kill -9 at every step of a landing, and at random under load: the next process lands each mail exactly once."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.harness import FAST, running
from tests.faults.proxy import TO_CLIENT, TO_SERVER, Connection, FaultProxy, Rule
from tests.integration.faults.databases import Scene, at_landing_commit, hashes_of, mail, scene
from tests.integration.listener.settings import plain_settings
from tests.servers.dovecot import Dovecot
from tests.servers.fixtures import *  # noqa: F403 - fixtures are found by name
from tests.servers.mariadb import MariaDb
from tests.servers.process import SqlServer
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

MAILS = 20
START_SECONDS = 30.0

STATEMENTS = {
    "before-its-first-select": rb"SELECT ops_mail_cursor\.uid_validity, ops_mail_cursor\.last_uid, UTC_TIMESTAMP",
    "at-the-heads-of-content": rb"INSERT INTO ops_mail_blob ",
    "at-the-content": rb"INSERT INTO `ops_mail_blob_chunk`",
    "at-the-mails": rb"INSERT INTO `ops_mail_message`",
    "at-the-cursor": rb"UPDATE ops_mail_cursor SET last_uid=CASE",
}


class Death:
    """A hook that kills the process: what it had just sent still reaches the server (`passed_on`), or never does."""

    def __init__(self, product: OpsMail, *, passed_on: bool) -> None:
        self._product = product
        self._passed_on = passed_on
        self.came = asyncio.Event()

    def __call__(self, connection: Connection) -> None:
        self._product.kill()
        self.came.set()
        if not self._passed_on:
            connection.reset()


async def dies(product: OpsMail, death: Death) -> None:
    """Run the process until its moment has come and it is dead."""
    try:
        product.launch()
        await asyncio.wait_for(death.came.wait(), START_SECONDS)
    finally:
        product.close()
    await asyncio.sleep(0.1)  # what was passed on is executed


async def lands_the_rest(at: Scene) -> None:
    """The next process, and a mail that came while there was none."""
    at.proxy.rules.clear()
    at.append(MAILS)
    async with running(at.settings) as app:
        await at.until_landed(app, MAILS + 1)
        await app.until_state("idling")
    at.assert_exactly(range(MAILS + 1))


@pytest.mark.parametrize(
    ("step", "passed_on"), [*((step, False) for step in STATEMENTS), ("at-the-mails", True), ("at-the-cursor", True)]
)
async def test_killed_inside_the_transaction(
    step: str, passed_on: bool, dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    async with scene(dovecot, new_user(), mariadb_url) as at:
        at.append(*range(MAILS))
        product = OpsMail(tmp_path, FAST | at.settings)
        death = Death(product, passed_on=passed_on)
        at.proxy.add(Rule(TO_SERVER, STATEMENTS[step], hook=death))
        await dies(product, death)
        assert at.tables.count() == 0
        await lands_the_rest(at)


@pytest.mark.parametrize(("moment", "rows"), [("unsent", 0), ("executed", MAILS), ("answered", MAILS)])
async def test_killed_around_the_commit(
    moment: str, rows: int, dovecot: Dovecot, sql_server: SqlServer, new_user: Callable[[], str], tmp_path: Path
) -> None:
    async with scene(dovecot, new_user(), sql_server.create_database()) as at:
        at.append(*range(MAILS))
        product = OpsMail(tmp_path, FAST | at.settings)
        death = Death(product, passed_on=False)
        match moment:
            case "unsent":
                at_landing_commit(at.proxy, before=death)
            case "executed":
                at_landing_commit(at.proxy, answer=death)
            case _:  # the pool's ROLLBACK is what follows the answer
                then = Rule(TO_SERVER, rb"ROLLBACK", hook=death)
                at_landing_commit(at.proxy, answer=lambda _: at.proxy.rules.append(then))
        await dies(product, death)
        assert at.tables.count() == rows
        await lands_the_rest(at)


async def test_killed_with_the_bodies_fetched_and_nothing_written(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    async with (
        scene(dovecot, new_user(), mariadb_url) as at,
        FaultProxy(("127.0.0.1", dovecot.port)) as imap,
    ):
        at.append(*range(MAILS))
        settings = plain_settings(imap.port, dovecot, at.user, at.url)
        product = OpsMail(tmp_path, FAST | settings)
        death = Death(product, passed_on=True)
        answered = Rule(TO_CLIENT, rb"^\w+ OK", hook=death)
        imap.add(Rule(TO_SERVER, rb"BODY\.PEEK", hook=lambda _: imap.rules.append(answered)))
        await dies(product, death)
        assert at.tables.count() == 0
        await lands_the_rest(at)


async def test_killed_again_and_again_under_a_backlog(
    dovecot: Dovecot, mariadb: MariaDb, new_user: Callable[[], str], tmp_path: Path
) -> None:
    user, url, total, draw = new_user(), mariadb.create_database(), 700, random.Random(20)
    tables = Tables(url)
    # 4 KB each, so that the backlog is several batches and a kill falls into their middle
    raws = [mail(number) + b"x" * 4_000 for number in range(total)]
    dovecot.append_many(user, "INBOX", raws)
    settings = FAST | plain_settings(dovecot.port, dovecot, user, url, IDLE_SECONDS=60)
    seen = []
    for life in range(3):
        product = OpsMail(tmp_path, settings, name=f"life{life}")
        try:
            product.launch()
            before, limit = tables.count(), time.monotonic() + START_SECONDS
            while tables.count() in (before, 0) and before < total:
                assert time.monotonic() < limit, product.explain()
                await asyncio.sleep(0.01)
            await asyncio.sleep(draw.uniform(0, 0.15))
        finally:
            product.kill()
            product.close()
        seen.append(tables.count())
    assert any(0 < count < total for count in seen), seen  # else no kill fell among the landings
    async with running(settings) as app:
        await app.until(lambda: tables.count() >= total, "all rows")
        await app.until_state("idling")
    assert tables.hashes() == hashes_of(raws)
