"""Clocks that jump: the wall clock disturbs nothing, and a machine that slept says so and comes back by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from ops_mail.app import process
from ops_mail.core.clock import Clock
from tests.faults.harness import running
from tests.faults.proxy import FaultProxy
from tests.integration.faults.databases import scene, through
from tests.integration.listener.settings import plain_settings
from tests.servers.dovecot import Dovecot

HOUR = timedelta(hours=1)


class Jumping:
    """The process's clocks, which a test turns."""

    def __init__(self) -> None:
        self.wall = timedelta()
        self.slept_seconds = 0.0
        self._real = process.system_clock()

    def clock(self) -> Clock:
        return Clock(
            now=lambda: datetime.now(UTC) + self.wall,
            mono=self._real.mono,
            boot=lambda: self._real.boot() + self.slept_seconds,
        )


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Jumping:
    jumping = Jumping()
    monkeypatch.setattr(process, "system_clock", jumping.clock)
    return jumping


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
async def test_a_wall_clock_that_jumps_disturbs_neither_lease_nor_idle_nor_backoff(
    jump: timedelta, clocks: Jumping, mariadb_url: str, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    user, url = new_user(), mariadb_url
    async with FaultProxy(("127.0.0.1", dovecot.port)) as imap, scene(dovecot, user, url) as at:
        settings = plain_settings(imap.port, dovecot, user, url, IDLE_SECONDS=2)
        async with running(settings) as app, running(settings, INSTANCE_NAME="other") as other:
            await app.until(lambda: "idling" in (app.mailbox.state.value, other.mailbox.state.value), "a leader")
            leader = app if app.mailbox.epoch is not None and app.mailbox.state.value != "standby" else other
            epoch = leader.mailbox.epoch
            clocks.wall = jump
            at.append(0)
            await at.until_landed(leader, 1, 5)
            await leader.until_synced_again(6)  # the IDLE window is 2 s, not an hour
            imap.reset()
            at.append(1)
            await at.until_landed(leader, 2, 8)  # nor is the backoff
            await asyncio.sleep(4)  # longer than a lease
            assert leader.mailbox.epoch == epoch
            assert at.tables.cursor()["epoch"] == epoch
            assert at.tables.value("SELECT lease_until > UTC_TIMESTAMP(6) FROM ops_mail_cursor") == 1
            left = at.tables.value("SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), lease_until) FROM ops_mail_cursor")
            assert left <= 3
            assert (await leader.get("/readyz"))[0] == 200
    at.assert_exactly([0, 1])


async def test_a_machine_that_slept_for_an_hour_says_so_and_comes_back_without_a_restart(
    clocks: Jumping, mariadb_url: str, dovecot: Dovecot, new_user: Callable[[], str]
) -> None:
    """The boot clock jumps, the monotonic one does not, and every connection is dead without a word."""
    user, url = new_user(), mariadb_url
    async with FaultProxy(("127.0.0.1", dovecot.port)) as imap, scene(dovecot, user, url) as at:
        settings = plain_settings(imap.port, dovecot, user, through(url, at.proxy.port), IDLE_SECONDS=4)
        async with running(settings) as app:
            await app.until_state("idling")
            assert (await app.get("/readyz"))[0] == 200
            imap.freeze()
            at.proxy.freeze()
            await imap.refuse()
            clocks.slept_seconds = 3600.0
            code, body = await app.get_json("/readyz")
            assert code == 503
            assert "last sync 36" in body["mailboxes"][0]["reason"]
            assert (await app.get("/healthz"))[0] == 200
            at.append(0)
            await imap.accept()
            await at.until_landed(app, 1, 30)
            await app.until_state("idling")
            assert (await app.get("/readyz"))[0] == 200
            assert (await app.get("/healthz"))[0] == 200
    at.assert_exactly([0])
