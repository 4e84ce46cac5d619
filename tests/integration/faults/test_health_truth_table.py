"""What the endpoints say in each condition: alive is about this process, ready is about its work."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from ops_mail.imap import ImapSession
from tests.faults.harness import App, running
from tests.faults.proxy import Connection, FaultProxy
from tests.integration.listener.settings import plain_settings
from tests.servers.dovecot import Dovecot
from tests.servers.mariadb import MariaDb
from tests.servers.tables import Tables

QUICK = {"IDLE_SECONDS": 1, "COMMAND_TIMEOUT_SECONDS": 1, "CONNECT_TIMEOUT_SECONDS": 1}
STALE_SECONDS = 2 * 1 + 1  # two IDLE windows and a command's time


async def expect(
    app: App, *, alive: bool = True, ready: bool, database: str = "ok", seconds: float = 20
) -> dict[str, Any]:
    """Until `/readyz` says so; `/healthz` must say `alive` all the time meanwhile. The body of `/readyz`."""
    deadline = time.monotonic() + seconds
    while True:
        health, _ = await app.get_json("/healthz")
        assert health == (200 if alive else 503)
        code, body = await app.get_json("/readyz")
        if (code, body["ready"], body["database"]) == (200 if ready else 503, ready, database):
            return body
        assert time.monotonic() < deadline, body
        await asyncio.sleep(0.05)


async def metric(app: App, sample: str) -> float:
    _, text = await app.get("/metrics")
    values = [line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith(sample + " ")]
    assert len(values) == 1, (sample, values)
    return float(values[0])


async def test_all_is_well_and_an_hour_without_mail_changes_nothing(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    user = new_user()
    async with running(plain_settings(dovecot.port, dovecot, user, mariadb_url), **QUICK) as app:
        body = await expect(app, ready=True)
        for _ in range(4):  # many windows without a mail, on the scale of these settings
            await app.until_synced_again()
            body = await expect(app, ready=True, seconds=0)
        (mailbox,) = body["mailboxes"]
        assert mailbox["state"] in ("idling", "ending", "syncing")
        assert mailbox["last_sync_age_seconds"] < STALE_SECONDS
        assert mailbox["backlog"] == 0
        assert await metric(app, f'ops_mail_guard_held{{mailbox="{user}"}}') == 1
        assert await metric(app, f'ops_mail_idle_total{{mailbox="{user}",outcome="timeout"}}') >= 4


async def test_the_database_goes_and_comes_back(
    dovecot: Dovecot, own_mariadb: MariaDb, new_user: Callable[[], str]
) -> None:
    user, url = new_user(), own_mariadb.create_database()
    async with running(plain_settings(dovecot.port, dovecot, user, url), **QUICK) as app:
        await expect(app, ready=True)
        own_mariadb.kill()
        body = await expect(app, ready=False, database="down")
        assert body["reason"]
        await app.until(lambda: app.mailbox.state.value == "standby", "standby: no guard without a database")
        await expect(app, ready=False, database="down", seconds=0)
        assert await metric(app, f'ops_mail_guard_held{{mailbox="{user}"}}') == 0
        assert await metric(app, "ops_mail_db_errors_total") > 0
        own_mariadb.restart()
        await expect(app, ready=True, seconds=40)
        dovecot.append(user, "INBOX", b"Subject: after\r\n\r\nx")
        await app.until(lambda: Tables(url).count() == 1, "a mail after the recovery")


async def test_the_imap_server_goes_and_comes_back(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    user = new_user()
    async with FaultProxy(("127.0.0.1", dovecot.port)) as proxy:
        settings = plain_settings(proxy.port, dovecot, user, mariadb_url)
        async with running(settings, **QUICK) as app:
            await expect(app, ready=True)
            await proxy.refuse()
            proxy.reset()
            body = await expect(app, ready=False)
            (mailbox,) = body["mailboxes"]
            assert mailbox["state"] in ("backoff", "connecting")
            assert "OPS_MAIL_IMAP_HOST" in mailbox["reason"]
            assert mailbox["last_sync_age_seconds"] >= STALE_SECONDS
            assert await metric(app, f'ops_mail_reconnects_total{{mailbox="{user}",reason="unreachable"}}') > 0
            assert await metric(app, f'ops_mail_mailbox_state{{mailbox="{user}",state="idling"}}') == 0
            await proxy.accept()
            await expect(app, ready=True)


async def test_an_expired_certificate(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    yesterday = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", not_after=yesterday).configure_cert(context)
    async with tls_server(context) as port:
        settings = plain_settings(port, dovecot, new_user(), mariadb_url)
        settings |= {"IMAP_SECURITY": "tls", "IMAP_CA_FILE": tmp_path / "ca.pem"}
        async with running(settings, **QUICK) as app:
            await app.until(lambda: app.mailbox.failures >= 2, "two refusals")
            body = await expect(app, ready=False)
            assert "expired" in body["mailboxes"][0]["reason"]
            assert (
                await metric(app, f'ops_mail_reconnects_total{{mailbox="{app.mailbox.key.mailbox}",reason="tls"}}') >= 2
            )


@contextlib.asynccontextmanager
async def tls_server(context: ssl.SSLContext) -> AsyncIterator[int]:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_one_of_three_mailboxes_is_dead_and_the_others_do_not_care(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], free_port: int, tmp_path: Path
) -> None:
    users = [new_user() for _ in range(3)]
    ports = [dovecot.port, free_port, dovecot.port]
    entries = [
        f'[[mailbox]]\nname = "{user}"\nhost = "127.0.0.1"\nport = {port}\nsecurity = "plain"\nusername = "{user}"\n'
        f'password = "{dovecot.password}"\n'
        for user, port in zip(users, ports, strict=True)
    ]
    (tmp_path / "mailboxes.toml").write_text("\n".join(entries))
    settings = {"MAILBOXES_FILE": tmp_path / "mailboxes.toml", "DATABASE_URL": mariadb_url}
    async with running(settings, **QUICK) as app:
        await app.until(lambda: [m.last_sync_at is not None for m in app.mailboxes] == [True, False, True], "two syncs")
        for number, user in enumerate(users):
            dovecot.append(user, "INBOX", b"Subject: %d\r\n\r\nx" % number)
        await app.until(lambda: Tables(mariadb_url).count() == 2, "the mails of the living")
        body = await expect(app, ready=False)
        assert [mailbox["ready"] for mailbox in body["mailboxes"]] == [True, False, True]
        assert await metric(app, f'ops_mail_mailbox_state{{mailbox="{users[0]}",state="backoff"}}') == 0
        assert await metric(app, f'ops_mail_reconnects_total{{mailbox="{users[1]}",reason="unreachable"}}') > 0


async def test_a_standby_is_alive_and_ready(dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]) -> None:
    settings = plain_settings(dovecot.port, dovecot, new_user(), mariadb_url)
    async with running(settings, **QUICK) as leader:
        await expect(leader, ready=True)
        async with running(settings, **QUICK, INSTANCE_NAME="two") as standby:
            body = await expect(standby, ready=True)
            (mailbox,) = body["mailboxes"]
            assert mailbox["state"] == "standby"
            assert mailbox["holder"].startswith("one:")
            assert await metric(standby, f'ops_mail_guard_held{{mailbox="{mailbox["name"]}"}}') == 0


async def test_a_stuck_task_fails_liveness_within_half_a_minute_and_its_end_restores_it(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = asyncio.Event()
    original = ImapSession.idle

    async def hangs(self: ImapSession, *arguments: Any) -> Any:
        await release.wait()
        return await original(self, *arguments)

    monkeypatch.setattr(ImapSession, "idle", hangs)
    async with running(plain_settings(dovecot.port, dovecot, new_user(), mariadb_url)) as app:
        await app.until_state("idling")
        since = time.monotonic()
        assert (await app.get_json("/healthz"))[0] == 200
        while (answer := await app.get_json("/healthz"))[0] == 200:
            assert time.monotonic() - since < 30
            await asyncio.sleep(0.2)
        assert answer[1]["status"] == "stuck"
        assert len(answer[1]["reasons"]) == 1
        assert "listener:" in answer[1]["reasons"][0]
        release.set()
        await asyncio.sleep(1)
        assert (await app.get_json("/healthz"))[0] == 200


async def test_a_blocked_event_loop_leaves_liveness_unanswered_until_it_runs_again(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    async with running(plain_settings(dovecot.port, dovecot, new_user(), mariadb_url)) as app:
        await expect(app, ready=True)
        asking = asyncio.get_running_loop().run_in_executor(None, probe, app.port, 1.0)
        time.sleep(2.5)  # blocking the loop is what this is about
        assert await asking == "no answer"
        assert await asyncio.to_thread(probe, app.port, 5.0) == "200"
        assert await metric(app, 'ops_mail_event_loop_lag_seconds_bucket{le="1.0"}') < await metric(
            app, "ops_mail_event_loop_lag_seconds_count"
        )


def probe(port: int, timeout: float) -> str:
    """A liveness probe with a time limit, as the kubelet's."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=timeout) as answer:
            return str(answer.status)
    except (TimeoutError, urllib.error.URLError):
        return "no answer"


async def test_what_fails_in_closing_changes_neither_the_exit_code_nor_the_cause(
    mariadb_address: tuple[str, int], dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    """LOGOUT into a dead socket, releasing the guard and disposing of the pool at a database that says nothing."""
    async with FaultProxy(("127.0.0.1", dovecot.port)) as imap, FaultProxy(mariadb_address, lines=False) as database:
        url = mariadb_url.replace(f":{mariadb_address[1]}/", f":{database.port}/")
        settings = plain_settings(imap.port, dovecot, new_user(), url, SHUTDOWN_GRACE_SECONDS=10)
        async with running(settings) as app:
            await app.until_state("idling")
            freeze_all(imap)
            freeze_all(database)
            # leaving the context stops the process and asserts exit code 0
        assert app.mailbox.state.value == "stopped"
        assert app.mailbox.last_error is None


def freeze_all(proxy: FaultProxy) -> None:
    """What is open and what is opened from now on goes silent."""
    proxy.freeze()
    proxy.on_connect = Connection.freeze
