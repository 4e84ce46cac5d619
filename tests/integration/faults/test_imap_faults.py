"""Faults between the listener and the IMAP server, each at its exact point: every mail lands once, within one cycle."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from tests.faults.harness import App, running
from tests.faults.proxy import TO_CLIENT, TO_SERVER, Connection, FaultProxy, Rule, cutting
from tests.integration.listener.settings import plain_settings
from tests.servers.dovecot import Dovecot
from tests.servers.tables import Tables

LONG_IDLE = {"IDLE_SECONDS": 60}
SHORT_IDLE = {"IDLE_SECONDS": 2, "COMMAND_TIMEOUT_SECONDS": 2}


def mail(number: int) -> bytes:
    return b"Subject: %d\r\nMessage-ID: <%d@example.org>\r\n\r\nbody of %d\r\n" % (number, number, number)


def hashes(numbers: Iterable[int]) -> Counter[str]:
    return Counter(hashlib.sha256(mail(number)).hexdigest() for number in numbers)


class Scene:
    """A proxy before Dovecot, a user, a fresh database."""

    def __init__(self, dovecot: Dovecot, proxy: FaultProxy, user: str, url: str) -> None:
        self.dovecot = dovecot
        self.proxy = proxy
        self.user = user
        self.tables = Tables(url)
        self.settings = plain_settings(proxy.port, dovecot, user, url)

    def append(self, *numbers: int) -> None:
        for number in numbers:
            self.dovecot.append(self.user, "INBOX", mail(number))

    def appending(self, *numbers: int) -> Callable[[Connection], object]:
        """A hook that appends mails through a connection of its own while the proxied line waits."""
        return lambda _: asyncio.to_thread(self.append, *numbers)

    async def until_landed(self, app: App, count: int, seconds: float = 20.0) -> None:
        await app.until(lambda: self.tables.count() >= count, f"{count} rows", seconds)

    def assert_exactly(self, numbers: Iterable[int]) -> None:
        assert self.tables.hashes() == hashes(numbers)


@pytest.fixture
async def scene(dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]) -> object:
    async with FaultProxy(("127.0.0.1", dovecot.port)) as proxy:
        yield Scene(dovecot, proxy, new_user(), mariadb_url)


# --- connections that die without a word


async def test_a_connection_frozen_during_idle_is_noticed_within_window_and_command_timeout(scene: Scene) -> None:
    async with running(scene.settings, **SHORT_IDLE) as app:
        await app.until_state("idling")
        scene.proxy.freeze()
        scene.append(1)
        # IDLE window + DONE's time limit + backoff + connecting; the rest is the machine's own slowness
        await scene.until_landed(app, 1, 2 + 2 + 0.5 + 3 + 5)
        assert app.mailbox.reconnects == 1
    scene.assert_exactly([1])


async def test_a_connection_frozen_after_done_is_noticed_within_one_command_timeout(scene: Scene) -> None:
    done = scene.proxy.add(Rule(TO_SERVER, rb"^DONE", then=Connection.freeze))
    async with running(scene.settings, **SHORT_IDLE) as app:
        await app.until_state("idling")
        scene.append(1)
        await asyncio.wait_for(done.fired.wait(), 10)
        await scene.until_landed(app, 1, 2 + 0.5 + 3 + 5)
        assert app.mailbox.reconnects == 1
    scene.assert_exactly([1])


@pytest.mark.parametrize("command", [rb"LOGIN", rb"SELECT", rb"UID FETCH 1:\*", rb"BODY\.PEEK", rb"IDLE"])
async def test_a_connection_frozen_at_any_command_is_given_up_and_replaced(command: bytes, scene: Scene) -> None:
    scene.append(1)
    scene.proxy.add(Rule(TO_SERVER, command, then=Connection.freeze))
    async with running(scene.settings, **SHORT_IDLE) as app:
        await scene.until_landed(app, 1, 15)
        await app.until(lambda: app.mailbox.reconnects == 1, "the failure to be noticed")
        await app.until_state("idling", 15)
        assert app.mailbox.failures == 0
    scene.assert_exactly([1])


# --- mails that arrive in the gaps


@pytest.mark.parametrize(
    ("way", "line"),
    [
        (TO_SERVER, rb"^\w+ IDLE"),  # before the server knows of IDLE
        (TO_CLIENT, rb"^\+ "),  # before `+ idling` is seen
        (TO_SERVER, rb"^\w+ SELECT"),
        (TO_SERVER, rb"FETCH 1:\*"),  # before the first listing
        (TO_CLIENT, rb"^\w+ OK .*[Ff]etch"),  # between the listing's answer and its tagged OK
        (TO_SERVER, rb"BODY\.PEEK"),  # while bodies are fetched
    ],
    ids=["before-idle", "before-plus", "before-select", "before-listing", "listing-ok", "during-fetch"],
)
async def test_a_mail_that_arrives_in_a_gap_lands_in_this_cycle_without_another_mail(
    way: object, line: bytes, scene: Scene
) -> None:
    scene.append(1)
    rule = scene.proxy.add(Rule(way, line, hook=scene.appending(2)))  # type: ignore[arg-type]  # parametrised Way
    async with running(scene.settings, **LONG_IDLE) as app:
        await asyncio.wait_for(rule.fired.wait(), 20)
        await scene.until_landed(app, 2)
        assert app.mailbox.reconnects == 0
    scene.assert_exactly([1, 2])


async def test_a_mail_within_a_second_after_idle_began_lands_by_its_push(scene: Scene) -> None:
    async with running(scene.settings, **LONG_IDLE) as app:
        for number in range(3):
            await app.until_state("idling")
            await asyncio.sleep(0.3 * number)
            await asyncio.to_thread(scene.append, number)
            await scene.until_landed(app, number + 1)
    scene.assert_exactly(range(3))


async def test_mails_between_done_and_its_tagged_ok_land_in_the_sync_that_follows(scene: Scene) -> None:
    rule = scene.proxy.add(Rule(TO_SERVER, rb"^DONE", hook=scene.appending(2, 3)))
    async with running(scene.settings, **LONG_IDLE) as app:
        await app.until_state("idling")
        scene.append(1)
        await asyncio.wait_for(rule.fired.wait(), 10)
        await scene.until_landed(app, 3)
        assert app.mailbox.reconnects == 0
    scene.assert_exactly([1, 2, 3])


async def test_an_exists_before_the_plus_of_idle_counts_as_a_push(scene: Scene) -> None:
    """Some servers answer IDLE with what happened since the last command before they say `+`."""
    rule = scene.proxy.add(Rule(TO_CLIENT, rb"^\+ ", hook=scene.appending(1), before=b"* 1 EXISTS\r\n"))
    async with running(scene.settings, **LONG_IDLE) as app:
        await asyncio.wait_for(rule.fired.wait(), 20)
        await scene.until_landed(app, 1)
    scene.assert_exactly([1])


async def test_a_push_that_is_swallowed_costs_one_idle_window_and_is_counted(scene: Scene) -> None:
    scene.proxy.add(Rule(TO_CLIENT, rb"^\* \d+ (EXISTS|RECENT)", nth=0, replace=b""))
    async with running(scene.settings, **SHORT_IDLE) as app:
        await app.until_state("idling")
        scene.append(1)
        await scene.until_landed(app, 1, 2 + 2 + 5)
        _, metrics = await app.get("/metrics")
        assert f'ops_mail_missed_push_total{{mailbox="{scene.user}"}} 1.0' in metrics
        assert app.mailbox.reconnects == 0
    scene.assert_exactly([1])


def trusted(app: App) -> bool:
    return app.mailbox.idle_trusted


async def test_a_server_that_keeps_missing_pushes_is_polled_and_trusted_again_after_a_push(scene: Scene) -> None:
    swallow = scene.proxy.add(Rule(TO_CLIENT, rb"^\* \d+ (EXISTS|RECENT)", nth=0, replace=b""))
    async with running(scene.settings, IDLE_SECONDS=2, POLL_SECONDS=1) as app:
        await app.until_state("idling")
        for number in range(3):
            scene.append(number)
            await scene.until_landed(app, number + 1)
        await app.until_state("polling")
        assert not trusted(app)
        scene.proxy.rules.remove(swallow)
        for number in range(3, 8):  # a push may fall between two waits; the next one does not
            scene.append(number)
            await scene.until_landed(app, number + 1)
            await asyncio.sleep(0.2)
            if trusted(app):
                break
        await app.until_state("idling")
        rows = scene.tables.count()
    scene.assert_exactly(range(rows))


# --- connections that break


STEPS = [
    (TO_CLIENT, rb"^\* OK"),
    (TO_SERVER, rb"LOGIN"),
    (TO_CLIENT, rb"^\w+ OK .*[Ll]ogged in"),
    (TO_SERVER, rb"SELECT"),
    (TO_CLIENT, rb"UIDVALIDITY"),
    (TO_SERVER, rb"FETCH 1:\*"),
    (TO_CLIENT, rb"^\* 2 FETCH"),
    (TO_SERVER, rb"BODY\.PEEK"),
    (TO_SERVER, rb"IDLE"),
    (TO_CLIENT, rb"^\+ "),
    (TO_SERVER, rb"^DONE"),
    (TO_CLIENT, rb"[Ii]dle completed"),
]


@pytest.mark.parametrize(("way", "line"), STEPS, ids=[line.decode() for _, line in STEPS])
async def test_a_reset_at_any_step_loses_and_doubles_nothing(way: object, line: bytes, scene: Scene) -> None:
    scene.append(1, 2, 3)
    rule = scene.proxy.add(Rule(way, line, then=Connection.reset))  # type: ignore[arg-type]  # parametrised Way
    async with running(scene.settings, **LONG_IDLE) as app:
        if b"DONE" in line or b"ompleted" in line:
            await app.until_state("idling")
            scene.append(4)
        await asyncio.wait_for(rule.fired.wait(), 20)
        await app.until(lambda: app.mailbox.reconnects == 1, "the failure to be noticed")
        await app.until_state("idling")
        scene.append(5)
        expected = [1, 2, 3, 5] + ([4] if b"DONE" in line or b"ompleted" in line else [])
        await scene.until_landed(app, len(expected))
    scene.assert_exactly(expected)


@pytest.mark.parametrize("after", [0, 1, 30, 150, 1_000, 60_000, 140_000])
async def test_a_cut_inside_the_bodies_loses_and_doubles_nothing(after: int, scene: Scene) -> None:
    big = [mail(number) + b"x" * 30_000 for number in range(5)]
    for raw in big:
        scene.dovecot.append(scene.user, "INBOX", raw)
    rule = scene.proxy.add(Rule(TO_SERVER, rb"BODY\.PEEK", then=cutting(TO_CLIENT, after)))
    async with running(scene.settings, **LONG_IDLE) as app:
        await asyncio.wait_for(rule.fired.wait(), 20)
        await scene.until_landed(app, 5)
        await app.until_state("idling")
    assert scene.tables.hashes() == Counter(hashlib.sha256(raw).hexdigest() for raw in big)


async def test_a_cut_inside_a_large_mail_fetched_in_pieces_starts_it_anew(scene: Scene) -> None:
    raw = mail(1) + (b"0123456789abcdef" * 4 + b"\r\n") * 50_000
    scene.dovecot.append(scene.user, "INBOX", raw)
    scene.append(2)
    rule = scene.proxy.add(Rule(TO_SERVER, rb"BODY\.PEEK", nth=3, then=cutting(TO_CLIENT, 500_000)))
    async with running(scene.settings, **LONG_IDLE) as app:
        await asyncio.wait_for(rule.fired.wait(), 20)
        await scene.until_landed(app, 2, 40)
        await app.until_state("idling")
    assert scene.tables.hashes() == Counter([hashlib.sha256(raw).hexdigest()]) + hashes([2])


@pytest.mark.parametrize(("way", "line"), STEPS, ids=[line.decode() for _, line in STEPS])
async def test_a_bye_at_any_step_is_a_failure_with_the_servers_words_and_nothing_is_lost(
    way: object, line: bytes, scene: Scene
) -> None:
    scene.append(1, 2, 3)

    def say_goodbye(connection: Connection) -> None:
        connection.inject(TO_CLIENT, b"* BYE Server shutting down.\r\n")
        connection.close()

    rule = scene.proxy.add(Rule(way, line, then=say_goodbye))  # type: ignore[arg-type]  # parametrised Way
    async with running(scene.settings, **LONG_IDLE) as app:
        if b"DONE" in line or b"ompleted" in line:
            await app.until_state("idling")
            scene.append(4)
        await asyncio.wait_for(rule.fired.wait(), 20)
        await app.until(lambda: app.mailbox.reconnects == 1, "the failure to be noticed")
        await app.until_state("idling")
        expected = [1, 2, 3] + ([4] if b"DONE" in line or b"ompleted" in line else [])
        await scene.until_landed(app, len(expected))
    scene.assert_exactly(expected)


async def test_a_greeting_that_never_comes_is_given_up_after_the_connect_timeout(scene: Scene) -> None:
    scene.append(1)
    scene.proxy.on_connect = Connection.freeze
    async with running(scene.settings, CONNECT_TIMEOUT_SECONDS=1) as app:
        await app.until(lambda: app.mailbox.reconnects >= 2, "two attempts")
        assert "127.0.0.1" in (app.mailbox.last_error or "")
        assert (await app.get("/healthz"))[0] == 200
        scene.proxy.on_connect = None
        await scene.until_landed(app, 1)
    scene.assert_exactly([1])


async def test_a_server_that_says_bye_right_after_every_select_is_asked_ever_more_slowly(scene: Scene) -> None:
    def say_goodbye(connection: Connection) -> None:
        connection.inject(TO_CLIENT, b"* BYE Too many connections\r\n")
        connection.close()

    scene.append(1)
    rule = scene.proxy.add(Rule(TO_SERVER, rb"SELECT", nth=0, then=say_goodbye))
    async with running(scene.settings, BACKOFF_INITIAL_SECONDS=0.2, BACKOFF_MAX_SECONDS=60) as app:
        await app.until(lambda: app.mailbox.failures >= 4, "four failures in a row")
        assert "Too many connections" in (app.mailbox.last_error or "")
        assert rule.matches == app.mailbox.reconnects
        assert (await app.get("/readyz"))[0] == 503
    scene.assert_exactly([])
    scene.proxy.rules.clear()
    async with running(scene.settings) as app:
        await scene.until_landed(app, 1)
    scene.assert_exactly([1])


async def test_a_refused_connection_is_tried_until_the_server_is_back(scene: Scene) -> None:
    async with running(scene.settings) as app:
        await app.until_state("idling")
        await scene.proxy.refuse()
        scene.proxy.reset()
        await app.until(lambda: app.mailbox.failures >= 3, "three failures")
        scene.append(1)
        await scene.proxy.accept()
        await scene.until_landed(app, 1)
        assert app.mailbox.failures == 0
    scene.assert_exactly([1])
