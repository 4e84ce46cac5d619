"""The database fails in every way it can: the listener waits, comes back by itself, and each mail has one row."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pymysql
import pytest

from tests.faults.harness import App, running
from tests.faults.proxy import TO_SERVER, Connection, Rule
from tests.integration.faults.databases import ADVANCE, Scene, at_landing_commit, hashes_of, mail, scene
from tests.servers.dovecot import Dovecot
from tests.servers.fixtures import *  # noqa: F403 - fixtures are found by name
from tests.servers.process import SqlServer

pytestmark = pytest.mark.collects_garbage


@asynccontextmanager
async def at_peace(dovecot: Dovecot, user: str, server: SqlServer, **more: object) -> AsyncIterator[tuple[Scene, App]]:
    """One mail has landed and the listener idles; at the end it must idle again, with nothing lost."""
    async with scene(dovecot, user, server.create_database()) as at:
        at.append(0)
        async with running(at.settings, **more) as app:
            await at.until_landed(app, 1)
            await app.until_state("idling")
            yield at, app


async def recovers(at: Scene, app: App, mails: int, seconds: float = 30.0) -> None:
    """All mails land without a restart, and the process was alive all the time."""
    await at.until_landed(app, mails, seconds)
    await app.until_state("idling", seconds)
    assert (await app.get("/healthz"))[0] == 200
    at.assert_exactly(range(mails))


async def fails_visibly(app: App) -> None:
    """Readiness says why; liveness does not fail for what is remote."""
    await app.until(lambda: app.mailbox.last_error, "an error in the status")
    assert (await app.get("/healthz"))[0] == 200


@contextmanager
def another_session(server: SqlServer, database: str) -> Iterator[pymysql.cursors.Cursor]:
    """A transaction of somebody else; rolled back at the end."""
    connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root", password="", database=database)
    with connection, connection.cursor() as cursor:
        yield cursor


# --- the server goes away


async def test_killed_and_restarted_while_idle(
    own_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    async with at_peace(dovecot, new_user(), own_server) as (at, app):
        await asyncio.to_thread(own_server.kill)
        at.append(1)
        await fails_visibly(app)
        await asyncio.to_thread(own_server.restart)
        await recovers(at, app, 2)


async def test_killed_and_restarted_in_the_middle_of_a_landing(
    own_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    async with at_peace(dovecot, new_user(), own_server) as (at, app):
        rule = Rule(TO_SERVER, ADVANCE, hook=lambda _: own_server.kill())
        at.proxy.add(rule)
        at.append(*range(1, 30))
        await app.until(lambda: rule.matches, "the landing")
        await fails_visibly(app)
        await asyncio.to_thread(own_server.restart)
        await recovers(at, app, 30)


async def test_killed_while_it_commits(own_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]) -> None:
    async with at_peace(dovecot, new_user(), own_server) as (at, app):

        async def die(connection: Connection) -> None:
            await asyncio.sleep(0)  # after the answer was given, before it is passed on
            own_server.kill()
            connection.reset()

        came = at_landing_commit(at.proxy, answer=die)
        at.append(*range(1, 30))
        await asyncio.wait_for(came.wait(), 20)
        await fails_visibly(app)
        await asyncio.to_thread(own_server.restart)
        await recovers(at, app, 30)


async def test_frozen_and_thawed(own_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]) -> None:
    async with at_peace(dovecot, new_user(), own_server) as (at, app):
        own_server.freeze()
        try:
            at.append(1)
            await fails_visibly(app)
        finally:
            own_server.thaw()
        await recovers(at, app, 2)


async def test_frozen_in_the_middle_of_a_landing_and_thawed(
    own_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    async with at_peace(dovecot, new_user(), own_server) as (at, app):
        rule = at.proxy.add(Rule(TO_SERVER, ADVANCE, hook=lambda _: own_server.freeze()))
        try:
            at.append(*range(1, 30))
            await asyncio.wait_for(rule.fired.wait(), 20)
            await fails_visibly(app)
        finally:
            own_server.thaw()
        await recovers(at, app, 30)


async def test_down_for_long_it_is_asked_ever_more_slowly_and_told_at_growing_intervals(
    own_mariadb: SqlServer, dovecot: Dovecot, new_user: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What ten minutes would show, at a sixtieth: growing pauses up to the maximum, few lines, alive throughout."""
    backoff = {"BACKOFF_INITIAL_SECONDS": 0.05, "BACKOFF_MAX_SECONDS": 2}
    async with at_peace(dovecot, new_user(), own_mariadb, **backoff) as (at, app):
        capsys.readouterr()
        asked: list[float] = []
        at.proxy.on_connect = lambda _: asked.append(time.monotonic())
        own_mariadb.kill()
        at.append(1)
        down_until = time.monotonic() + 10
        while time.monotonic() < down_until:
            assert (await app.get("/healthz"))[0] == 200
            await asyncio.sleep(0.5)
        lines = capsys.readouterr().out
        assert (await app.get("/readyz"))[0] == 503
        await asyncio.to_thread(own_mariadb.restart)
        # the longest pause, and the time to connect, select and land
        await recovers(at, app, 2, 2 + 10)
    told = [line for line in lines.splitlines() if "guard_unreachable" in line or "session_failed" in line]
    assert 1 <= len(told) <= 12, "\n".join(told)


# --- the server stays, and refuses


@pytest.mark.parametrize("when", ["idle", "landing"])
async def test_read_only(when: str, own_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]) -> None:
    switch = "super_read_only" if own_server.__class__.__name__ == "MySql" else "read_only"
    async with at_peace(dovecot, new_user(), own_server) as (at, app):
        if when == "idle":
            own_server.execute(f"SET GLOBAL {switch}=1")
            at.append(*range(1, 10))
        else:
            at.proxy.add(Rule(TO_SERVER, ADVANCE, hook=lambda _: own_server.execute(f"SET GLOBAL {switch}=1") and None))
            at.append(*range(1, 10))
        await fails_visibly(app)
        assert at.tables.count() in (1, 10)
        own_server.execute("SET GLOBAL super_read_only=0" if switch.startswith("super") else "SET GLOBAL read_only=0")
        own_server.execute("SET GLOBAL read_only=0")
        await recovers(at, app, 10)


async def test_a_row_lock_of_somebody_else_is_waited_out(
    own_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    """Longer than a lock wait timeout (5 s): the statement fails, the landing is run again."""
    async with at_peace(dovecot, new_user(), own_server) as (at, app):
        database = at.url.rsplit("/", 1)[1]
        with another_session(own_server, database) as session:
            session.execute("SELECT * FROM ops_mail_cursor FOR UPDATE")
            at.append(*range(1, 10))
            await asyncio.sleep(7)
            assert at.tables.count() == 1
            assert (await app.get("/healthz"))[0] == 200
        await recovers(at, app, 10)


async def test_a_deadlock_is_run_again(own_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]) -> None:
    """The landing holds its rows and waits for the cursor; somebody with the cursor asks for those rows."""
    async with at_peace(dovecot, new_user(), own_server) as (at, app):
        database = at.url.rsplit("/", 1)[1]
        with another_session(own_server, database) as session:
            session.execute("SET SESSION innodb_lock_wait_timeout=20")
            session.execute("SELECT * FROM ops_mail_cursor FOR UPDATE")

            def deadlock() -> None:
                # heavier than the landing, so that the server chooses the landing as the victim
                session.execute("UPDATE ops_mail_cursor SET last_error='x'")
                session.execute("SELECT * FROM ops_mail_message ORDER BY uid DESC FOR UPDATE")

            rule = at.proxy.add(Rule(TO_SERVER, ADVANCE))
            at.append(*range(1, 10))
            await asyncio.wait_for(rule.fired.wait(), 20)
            await asyncio.sleep(0.2)
            try:
                await asyncio.to_thread(deadlock)
            except pymysql.err.OperationalError as error:
                assert error.args[0] == 1213  # noqa: PT017 - which of the two is the victim is the server's choice
        await recovers(at, app, 10)
        assert at.proxy.rules[0].matches >= 1


async def test_a_commit_whose_answer_is_lost_is_not_landed_twice(
    sql_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    async with at_peace(dovecot, new_user(), sql_server) as (at, app):
        came = at_landing_commit(at.proxy, answer=Connection.reset)
        at.append(*range(1, 30))
        await asyncio.wait_for(came.wait(), 20)
        await app.until(lambda: app.mailbox.reconnects == 1, "the failure to be noticed")
        await recovers(at, app, 30)
        assert len(app.landed) == 1  # the process cannot know of the others; their rows are there


async def test_a_commit_that_never_reached_the_server_is_landed_again(
    sql_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    async with at_peace(dovecot, new_user(), sql_server) as (at, app):
        came = at_landing_commit(at.proxy, before=Connection.reset)
        at.append(*range(1, 30))
        await asyncio.wait_for(came.wait(), 20)
        await recovers(at, app, 30)


async def test_a_server_that_closes_idle_sessions_sooner_than_the_idle_window(
    own_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    """Its global wait_timeout does not matter: every session of ours says what it needs."""
    own_server.execute("SET GLOBAL wait_timeout=1")
    async with at_peace(dovecot, new_user(), own_server) as (at, app):
        await asyncio.sleep(3.5)
        at.append(1)
        await recovers(at, app, 2)
        assert app.mailbox.reconnects == 0


async def test_sessions_that_the_server_closed_while_idle_are_replaced(
    sql_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    async with at_peace(dovecot, new_user(), sql_server) as (at, app):
        user = at.url.split("//")[1].split(":")[0]
        for (thread,) in sql_server.execute(f"SELECT id FROM information_schema.processlist WHERE user='{user}'"):
            with contextlib.suppress(pymysql.err.OperationalError):  # one that has ended by itself meanwhile
                sql_server.execute(f"KILL {thread}")
        at.append(1)
        await recovers(at, app, 2)


def on_a_disk_of(server: SqlServer, megabytes: int) -> list[str]:
    """Its command line with so much for all tables; full, it answers 1114 as it does when the disk is (ENOSPC)."""
    small = [f"--innodb-data-file-path=ibdata1:12M:autoextend:max:{megabytes}M", "--innodb-file-per-table=OFF"]
    return [*type(server).command(server), *small]


def fill(server: SqlServer, database: str) -> None:
    """Somebody else's table takes the room that is left, all but a tenth of a megabyte."""
    server.execute("CREATE TABLE filler (id INT AUTO_INCREMENT PRIMARY KEY, data LONGBLOB)", database)
    for size in (1_000_000, 100_000):
        try:
            while True:
                server.execute(f"INSERT INTO filler (data) VALUES (REPEAT('x', {size}))", database)
        except pymysql.MySQLError as error:
            assert error.args[0] == 1114  # noqa: PT017 - how the loop ends


async def test_a_full_disk_costs_no_mail_its_row_and_lands_all_when_there_is_room_again(
    sql_server: SqlServer, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    """It is no mail's fault: none is quarantined."""
    server = type(sql_server)()
    room = [24]
    server.command = lambda: on_a_disk_of(server, room[0])  # type: ignore[method-assign]  # one server of its own kind
    await asyncio.to_thread(server.start)
    try:
        async with at_peace(dovecot, new_user(), server) as (at, app):
            database = at.url.rsplit("/", 1)[1]
            await asyncio.to_thread(fill, server, database)
            raws = [mail(1) + random.Random(1).randbytes(300_000).hex().encode()]
            at.dovecot.append_many(at.user, "INBOX", raws)
            await app.until(lambda: "full" in (app.mailbox.last_error or ""), "the server's word for it")
            assert at.tables.count() == 1
            assert (await app.get("/healthz"))[0] == 200
            room[0] = 240  # a full server cannot even DROP a table: somebody gives it a larger disk
            await asyncio.to_thread(server.restart)
            await at.until_landed(app, 2)
            await app.until_state("idling")
            assert at.tables.hashes() == hashes_of([mail(0), *raws])
            assert {row["status"] for row in at.tables.rows("SELECT status FROM ops_mail_message")} == {"landed"}
    finally:
        await asyncio.to_thread(server.stop)
