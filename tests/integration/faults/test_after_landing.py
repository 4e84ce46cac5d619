"""After-actions on the server: strictly after the commit, repeated safely, never at the price of a mail."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.faults.harness import running
from tests.faults.proxy import TO_CLIENT, TO_SERVER, Connection, FaultProxy, Rule
from tests.integration.listener.settings import plain_settings
from tests.servers.dovecot import Dovecot
from tests.servers.scripted import Peer, ReceivedCommand, ScriptedImap
from tests.servers.tables import Tables


def mail(number: int) -> bytes:
    return b"Subject: %d\r\n\r\nbody of %d\r\n" % (number, number)


def hashes(*numbers: int) -> Counter[str]:
    return Counter(hashlib.sha256(mail(number)).hexdigest() for number in numbers)


def subjects(dovecot: Dovecot, user: str, folder: str) -> dict[str, tuple[str, ...]]:
    """Flags by subject of what is in a folder."""
    contents = dovecot.contents(user, folder).values()
    return {raw.split(b"\r\n")[0].decode()[9:]: flags for raw, flags in contents}


async def act(dovecot: Dovecot, url: str, user: str, action: str, *numbers: int, count: int) -> None:
    """Run until `count` rows are there and idle, with these mails appended before and one by one while it runs."""
    async with running(plain_settings(dovecot.port, dovecot, user, url), IMAP_AFTER_LANDING=action) as app:
        await app.until_state("idling")
        for number in numbers:
            dovecot.append(user, "INBOX", mail(number))
        await app.until(lambda: Tables(url).count() == count, "the rows")
        await app.until(lambda: due(url) == 0, "the actions")


def has_rows(url: str, count: int) -> bool:
    return Tables(url).count() == count


def due(url: str) -> int:
    return int(Tables(url).value("SELECT COUNT(*) FROM ops_mail_message WHERE after_action_at IS NULL"))


async def test_seen_marks_what_has_landed(dovecot: Dovecot, database_url: str, new_user: Callable[[], str]) -> None:
    user = new_user()
    dovecot.append_many(user, "INBOX", [mail(1), mail(2)])
    await act(dovecot, database_url, user, "seen", 3, count=3)
    assert all(r"\Seen" in flags for flags in subjects(dovecot, user, "INBOX").values())
    assert Tables(database_url).hashes() == hashes(1, 2, 3)


async def test_move_takes_what_has_landed_to_the_folder(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    user = new_user()
    dovecot.create_folder(user, "Done")
    dovecot.append_many(user, "INBOX", [mail(1), mail(2)])
    await act(dovecot, mariadb_url, user, "move:Done", 3, count=3)
    assert subjects(dovecot, user, "INBOX") == {}
    assert set(subjects(dovecot, user, "Done")) == {"1", "2", "3"}
    assert Tables(mariadb_url).hashes() == hashes(1, 2, 3)


async def test_delete_reaches_neither_mails_that_landed_under_keep_nor_mails_that_are_too_large(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    user = new_user()
    settings = plain_settings(dovecot.port, dovecot, user, mariadb_url, MAX_MESSAGE_BYTES=20_000)
    dovecot.append(user, "INBOX", mail(1))
    async with running(settings) as app:
        await app.until_state("idling")
    dovecot.append(user, "INBOX", mail(2))
    dovecot.append(user, "INBOX", b"Subject: large\r\n\r\n" + b"x" * 30_000)
    async with running(settings, IMAP_AFTER_LANDING="delete") as app:
        await app.until_state("idling")
        assert Tables(mariadb_url).count() == 3
    assert set(subjects(dovecot, user, "INBOX")) == {"1", "large"}


async def test_a_mail_too_large_stays_where_it_is_until_a_larger_limit_completes_and_moves_it(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    user, large = new_user(), b"Subject: large\r\n\r\n" + b"x" * 30_000
    settings = plain_settings(dovecot.port, dovecot, user, mariadb_url, IMAP_AFTER_LANDING="move:Done")
    dovecot.create_folder(user, "Done")
    dovecot.append_many(user, "INBOX", [mail(1), large])
    async with running(settings, MAX_MESSAGE_BYTES=20_000) as app:
        await app.until(lambda: set(subjects(dovecot, user, "Done")) == {"1"}, "the move")
        await app.until_state("idling")
    assert set(subjects(dovecot, user, "INBOX")) == {"large"}
    async with running(settings, VERIFY_INTERVAL_SECONDS=3600) as app:
        await app.until(lambda: due(mariadb_url) == 0, "the action on what is complete now")
    assert set(subjects(dovecot, user, "Done")) == {"1", "large"}
    assert Tables(mariadb_url).hashes() == hashes(1) + Counter([hashlib.sha256(large).hexdigest()])


async def test_a_mail_that_the_server_did_not_give_stays_where_it_is(tmp_path: Path) -> None:
    server = ScriptedImap({uid: mail(uid) for uid in (1, 2, 3)})
    in_trouble = True

    async def fetch(peer: Peer, command: ReceivedCommand) -> None:
        uid_set, _, items = command.arguments.partition(" ")
        uids = peer.server.chosen(uid_set)
        if in_trouble and "BODY" in items and 2 in uids:
            await peer.no(command, "[SERVERBUG] internal error")
        else:
            lines = [peer.server.fetch_line(uid, items) for uid in uids]
            await peer.send(*lines, f"{command.tag} OK done".encode())

    server.on["UID FETCH"] = fetch
    url = f"sqlite+aiosqlite:///{tmp_path}/mail.db"
    settings = {"IMAP_HOST": "127.0.0.1", "IMAP_SECURITY": "plain", "IMAP_USERNAME": "ops", "IMAP_PASSWORD": "secret"}
    more = {"IDLE_SECONDS": "0.2", "VERIFY_INTERVAL_SECONDS": "0.5", "IMAP_AFTER_LANDING": "move:Done"}
    async with server, running(settings | more, IMAP_PORT=server.port, DATABASE_URL=url) as app:
        await app.until(lambda: has_rows(url, 3) and due(url) == 1, "three rows, two of them complete")
        await app.until_state("idling")
        assert moved(server) == {1, 3}
        in_trouble = False
        await app.until(lambda: due(url) == 0, "the action on what is complete now")
    assert moved(server) == {1, 2, 3}


def moved(server: ScriptedImap) -> set[int]:
    """The UIDs that the server was told to move."""
    commands = [line.split() for line in server.received if b" UID MOVE " in line]
    return {uid for words in commands for uid in server.chosen(words[3].decode())}


async def test_a_folder_that_does_not_exist_is_told_and_landing_goes_on(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    user = new_user()
    settings = plain_settings(dovecot.port, dovecot, user, mariadb_url)
    async with running(settings, IMAP_AFTER_LANDING="move:Nowhere") as app:
        await app.until_state("idling")
        for number in range(3):
            dovecot.append(user, "INBOX", mail(number))
            await app.until(partial(has_rows, mariadb_url, number + 1), "the row")
        _, metrics = await app.get("/metrics")
        assert f'ops_mail_after_actions_total{{mailbox="{user}",outcome="refused"}}' in metrics
        assert app.mailbox.reconnects == 0
    assert set(subjects(dovecot, user, "INBOX")) == {"0", "1", "2"}
    dovecot.create_folder(user, "Nowhere")
    async with running(settings, IMAP_AFTER_LANDING="move:Nowhere") as app:
        await app.until(lambda: due(mariadb_url) == 0, "the actions that were due")
    assert set(subjects(dovecot, user, "Nowhere")) == {"0", "1", "2"}


@pytest.mark.parametrize(
    ("way", "line"),
    [(TO_SERVER, rb"UID MOVE"), (TO_CLIENT, rb"^\w+ OK .*[Mm]ove")],
    ids=["before the server acted", "after it acted"],
)
async def test_a_connection_that_breaks_around_the_action_repeats_it_without_harm(
    way: object, line: bytes, dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    user = new_user()
    dovecot.create_folder(user, "Done")
    dovecot.append_many(user, "INBOX", [mail(1), mail(2)])
    async with FaultProxy(("127.0.0.1", dovecot.port)) as proxy:
        rule = Rule(way, line, replace=b"", then=Connection.reset)  # type: ignore[arg-type]  # parametrised Way
        proxy.add(rule)
        settings = plain_settings(proxy.port, dovecot, user, mariadb_url)
        async with running(settings, IMAP_AFTER_LANDING="move:Done") as app:
            await asyncio.wait_for(rule.fired.wait(), 20)
            await app.until(lambda: due(mariadb_url) == 0, "the actions")
            await app.until_state("idling")
    assert subjects(dovecot, user, "INBOX") == {}
    assert sorted(raw.split(b"\r\n")[0] for raw, _ in dovecot.contents(user, "Done").values()) == [
        b"Subject: 1",
        b"Subject: 2",
    ]
    assert Tables(mariadb_url).hashes() == hashes(1, 2)
