"""SIGTERM in every state: exit code 0 within the grace period, LOGOUT where there is a session, the guard free."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.proxy import TO_CLIENT, TO_SERVER, Connection, FaultProxy, Rule
from tests.integration.listener.settings import imap_settings, plain_settings
from tests.servers.dovecot import Dovecot
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

GRACE_SECONDS = 10


def stop(process: OpsMail) -> None:
    """SIGTERM; the promise is about the grace period, so the clock is asked for that alone."""
    started = time.monotonic()
    code = process.terminate()
    took = time.monotonic() - started
    assert code == 0, process.explain()
    assert took < GRACE_SECONDS, process.explain()
    assert "Traceback" not in process.log_text(), process.explain()
    assert process.lines()[-1]["event"] == "stopped"


def assert_guard_is_free(url: str) -> None:
    tables = Tables(url)
    cursor = tables.cursor()
    assert cursor["holder"] is None
    database = url.rsplit("/", 1)[1]
    others = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = :db AND id <> CONNECTION_ID()"
    assert tables.value(others, db=database) == 0
    assert tables.count_of("ops_mail_instance") == 0


def test_while_idling_it_logs_out_and_frees_the_guard(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    with OpsMail(tmp_path, imap_settings(dovecot, new_user(), mariadb_url)) as process:
        process.wait_state("idling")
        stop(process)
    assert_guard_is_free(mariadb_url)


async def test_logout_is_sent(dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path) -> None:
    async with FaultProxy(("127.0.0.1", dovecot.port)) as proxy:
        logout = proxy.add(Rule(TO_SERVER, rb"LOGOUT"))
        with OpsMail(tmp_path, plain_settings(proxy.port, dovecot, new_user(), mariadb_url)) as process:
            await asyncio.to_thread(process.wait_state, "idling")
            await asyncio.to_thread(stop, process)
        assert logout.matches == 1


async def test_while_standing_by(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    user = new_user()
    with (
        OpsMail(tmp_path, imap_settings(dovecot, user, mariadb_url), name="leader") as leader,
    ):
        leader.wait_state("idling")
        with OpsMail(tmp_path, imap_settings(dovecot, user, mariadb_url), name="standby") as standby:
            standby.wait_ready()
            assert standby.state() == "standby"
            stop(standby)
        assert Tables(mariadb_url).cursor()["holder"].startswith("leader:")
        stop(leader)


async def test_while_connecting_to_a_server_that_never_greets(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = plain_settings(silent.getsockname()[1], dovecot, new_user(), mariadb_url)
        with OpsMail(tmp_path, settings) as process:
            process.wait_state("connecting")
            stop(process)
    assert_guard_is_free(mariadb_url)


@pytest.mark.parametrize(
    ("command", "state"),
    [(rb"SELECT", "selecting"), (rb"UID FETCH 1:\*", "syncing"), (rb"BODY\.PEEK", "syncing"), (rb"DONE", "idling")],
    ids=["select", "listing", "fetching", "done"],
)
async def test_while_an_answer_does_not_come(
    command: bytes,
    state: str,
    dovecot: Dovecot,
    mariadb_url: str,
    new_user: Callable[[], str],
    tmp_path: Path,
) -> None:
    user = new_user()
    dovecot.append(user, "INBOX", b"Subject: one\r\n\r\nx")
    async with FaultProxy(("127.0.0.1", dovecot.port)) as proxy:
        rule = proxy.add(Rule(TO_SERVER, command, then=lambda connection: connection.freeze(TO_CLIENT)))
        settings = plain_settings(proxy.port, dovecot, user, mariadb_url)
        with OpsMail(tmp_path, settings) as process:
            if command == b"DONE":
                await asyncio.to_thread(process.wait_state, "idling")
                dovecot.append(user, "INBOX", b"Subject: two\r\n\r\nx")
            await asyncio.wait_for(rule.fired.wait(), 30)
            await asyncio.to_thread(process.wait_state, state)
            await asyncio.to_thread(stop, process)
    assert_guard_is_free(mariadb_url)


async def test_in_the_middle_of_a_backlog_what_has_landed_stays_and_the_rest_comes_later(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    user = new_user()
    uids = dovecot.append_many(user, "INBOX", [b"Subject: %d\r\n\r\nx" % number for number in range(2000)])
    tables = Tables(mariadb_url)
    settings = imap_settings(dovecot, user, mariadb_url)
    with OpsMail(tmp_path, settings, name="first") as process:
        sample = f'ops_mail_messages_landed_total{{mailbox="{user}",status="landed"}}'
        process.wait_until(lambda: process.metric(sample), "landing")
        stop(process)
    landed = [row["uid"] for row in tables.rows("SELECT uid FROM ops_mail_message ORDER BY id")]
    assert landed == uids[: len(landed)]
    assert tables.cursor()["last_uid"] == landed[-1]
    with OpsMail(tmp_path, settings, name="second") as process:
        process.wait_state("idling", 60)
        stop(process)
    assert [row["uid"] for row in tables.rows("SELECT uid FROM ops_mail_message ORDER BY id")] == uids


async def test_while_backing_off(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    async with FaultProxy(("127.0.0.1", dovecot.port)) as proxy:
        await proxy.refuse()
        settings = plain_settings(proxy.port, dovecot, new_user(), mariadb_url, BACKOFF_INITIAL_SECONDS=60)
        with OpsMail(tmp_path, settings) as process:
            await asyncio.to_thread(process.wait_state, "backoff")
            await asyncio.to_thread(stop, process)
    assert_guard_is_free(mariadb_url)


async def test_while_polling_a_server_without_idle(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    async with FaultProxy(("127.0.0.1", dovecot.port)) as proxy:
        hide_idle(proxy)
        settings = plain_settings(proxy.port, dovecot, new_user(), mariadb_url)
        with OpsMail(tmp_path, settings) as process:
            await asyncio.to_thread(process.wait_state, "polling")
            await asyncio.to_thread(stop, process)
    assert_guard_is_free(mariadb_url)


def hide_idle(proxy: FaultProxy) -> None:
    """The server's capabilities without IDLE, wherever they come."""

    def rewrite(connection: Connection) -> None:
        rule.replace = b"* CAPABILITY IMAP4rev1 UIDPLUS MOVE ID\r\n"

    rule = proxy.add(Rule(TO_CLIENT, rb"^\* CAPABILITY", nth=0, hook=rewrite))


async def test_while_the_database_does_not_answer(
    dovecot: Dovecot, mariadb_url: str, mariadb_address: tuple[str, int], new_user: Callable[[], str], tmp_path: Path
) -> None:
    async with FaultProxy(mariadb_address, lines=False) as proxy:
        url = mariadb_url.replace(f":{mariadb_address[1]}/", f":{proxy.port}/")
        with OpsMail(tmp_path, imap_settings(dovecot, new_user(), url)) as process:
            await asyncio.to_thread(process.wait_state, "idling")
            proxy.freeze()
            await asyncio.to_thread(stop, process)


def test_before_the_database_was_ever_there(
    dovecot: Dovecot, new_user: Callable[[], str], free_port: int, tmp_path: Path
) -> None:
    url = f"mysql+aiomysql://x:y@127.0.0.1:{free_port}/x"
    with OpsMail(tmp_path, imap_settings(dovecot, new_user(), url)) as process:
        process.wait_for_line("database_down")
        assert process.get("/healthz")[0] == 200
        stop(process)


def test_while_disabled(dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path) -> None:
    with OpsMail(tmp_path, imap_settings(dovecot, new_user(), mariadb_url, ENABLED="false")) as process:
        assert process.get_json("/healthz") == (
            200,
            {"status": "disabled", "instance": "one", "version": process.get_json("/healthz")[1]["version"]},
        )
        assert process.get_json("/readyz")[0] == 200
        stop(process)
    assert Tables(mariadb_url).rows("SHOW TABLES") == []
