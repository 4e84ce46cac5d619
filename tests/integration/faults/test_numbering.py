"""A folder that is numbered anew: old mails are found again, new ones land, nothing is handled twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from tests.faults.harness import running
from tests.faults.proxy import TO_CLIENT, TO_SERVER, Connection, FaultProxy, Rule
from tests.integration.listener.settings import plain_settings
from tests.servers.dovecot import Dovecot
from tests.servers.tables import Tables


def mail(number: int) -> bytes:
    return b"Subject: %d\r\nMessage-ID: <%d@example.org>\r\n\r\nbody\r\n" % (number, number)


def hashes(numbers: Iterable[int]) -> Counter[str]:
    return Counter(hashlib.sha256(mail(number)).hexdigest() for number in numbers)


def append_dated(dovecot: Dovecot, user: str, folder: str, numbers: Iterable[int]) -> None:
    """With an INTERNALDATE of their own, as a restore keeps it."""
    for number in numbers:
        date = datetime(2026, 1, 1 + number % 28, 10, 0, number % 60, tzinfo=UTC)
        dovecot.append(user, folder, mail(number), date=date)


def keys(tables: Tables) -> dict[str, tuple[int, int, str]]:
    rows = tables.rows("SELECT subject, uid_validity, uid, status FROM ops_mail_message")
    return {row["subject"]: (row["uid_validity"], row["uid"], row["status"]) for row in rows}


async def test_a_changed_uidvalidity_rekeys_the_old_lands_the_new_and_handles_nothing_twice(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    user, tables = new_user(), Tables(mariadb_url)
    folder = "Work"
    dovecot.create_folder(user, folder)
    append_dated(dovecot, user, folder, range(10))
    append_dated(dovecot, user, folder, [3])  # an identical twin is a mail of its own
    settings = plain_settings(dovecot.port, dovecot, user, mariadb_url, IMAP_FOLDER=folder)
    async with running(settings) as app:
        await app.until_state("idling")
    before = tables.cursor()
    tables.execute("UPDATE ops_mail_message SET status = 'done' WHERE subject IN ('1', '2', '3')")
    ids = {row["id"] for row in tables.rows("SELECT id FROM ops_mail_message")}

    dovecot.delete_folder(user, folder)
    dovecot.create_folder(user, folder)
    append_dated(dovecot, user, folder, [100, 9, 8, 7, 101, 6, 5, 4, 3, 3, 2, 102, 1, 0])

    async with running(settings) as app:
        await app.until_state("idling")
        assert {item.mail.mail.subject for item in app.landed} == {"100", "101", "102"}
    after = tables.cursor()
    assert after["uid_validity"] != before["uid_validity"]
    assert after["last_uid"] == 14
    assert tables.hashes() == hashes([*range(10), 3, 100, 101, 102])
    assert ids <= {row["id"] for row in tables.rows("SELECT id FROM ops_mail_message")}
    found = keys(tables)
    assert {validity for validity, _, _ in found.values()} == {after["uid_validity"]}
    assert [found[subject][1] for subject in ("100", "9", "0")] == [1, 2, 14]
    assert {subject for subject, key in found.items() if key[2] == "done"} == {"1", "2", "3"}
    assert tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status = 'done'") == 4
    (audit,) = tables.rows("SELECT action, detail FROM ops_mail_audit")
    detail = json.loads(audit["detail"])
    assert detail["rekeyed"] == 11
    assert (detail["old"], detail["new"]) == (before["uid_validity"], after["uid_validity"])


async def test_uids_that_restart_lower_under_the_same_uidvalidity_are_read_anew(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    """A restore from backup: the proxy gives the new folder the old one's UIDVALIDITY."""
    user, tables = new_user(), Tables(mariadb_url)
    folder = "Work"
    dovecot.create_folder(user, folder)
    append_dated(dovecot, user, folder, range(6))
    async with FaultProxy(("127.0.0.1", dovecot.port)) as proxy:
        settings = plain_settings(proxy.port, dovecot, user, mariadb_url, IMAP_FOLDER=folder)
        async with running(settings) as app:
            await app.until_state("idling")
        validity = tables.cursor()["uid_validity"]
        dovecot.delete_folder(user, folder)
        dovecot.create_folder(user, folder)
        append_dated(dovecot, user, folder, [5, 50, 4])
        proxy.add(Rule(TO_CLIENT, rb"UIDVALIDITY", nth=0, replace=b"* OK [UIDVALIDITY %d] UIDs valid\r\n" % validity))
        async with running(settings) as app:
            await app.until_state("idling")
            assert [item.mail.mail.subject for item in app.landed] == ["50"]
        async with running(settings) as app:  # and the next start finds everything in order
            await app.until_state("idling")
            assert app.landed == []
    assert tables.hashes() == hashes([*range(6), 50])
    found = keys(tables)
    assert [found[subject][:2] for subject in ("5", "50", "4")] == [(validity, 1), (validity, 2), (validity, 3)]
    assert all(found[str(number)][0] < 0 for number in range(4)), "rows of mails that are gone keep a retired key"
    assert tables.value("SELECT COUNT(*) FROM ops_mail_audit") == 1


async def test_mails_expunged_between_listing_and_fetching_are_passed_over(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    user, tables = new_user(), Tables(mariadb_url)
    uids = dovecot.append_many(user, "INBOX", [mail(number) for number in range(10)])
    async with FaultProxy(("127.0.0.1", dovecot.port)) as proxy:

        async def expunge(_: Connection) -> None:
            await asyncio.to_thread(dovecot.expunge, user, "INBOX", uids[2:5])

        proxy.add(Rule(TO_SERVER, rb"BODY\.PEEK", hook=expunge))
        async with running(plain_settings(proxy.port, dovecot, user, mariadb_url)) as app:
            await app.until_state("idling")
            dovecot.append(user, "INBOX", mail(10))
            await app.until(lambda: tables.cursor()["last_uid"] == uids[-1] + 1, "the live mail")
            assert app.mailbox.reconnects <= 1
    # Dovecot may still hand out what another session expunged; what it gives is landed, what it does not is no loss.
    expected = hashes([0, 1, *range(5, 11)])
    assert expected <= tables.hashes() <= hashes(range(11))
    assert tables.cursor()["last_uid"] == uids[-1] + 1


def raise_next_uid(dovecot: Dovecot, user: str, folder: str, uid: int) -> None:
    command = ["doveadm", "-c", str(dovecot.root / "dovecot.conf"), "mailbox", "update", "-u", user]
    subprocess.run([*command, "--min-next-uid", str(uid), folder], check=True, capture_output=True)


async def test_a_gap_of_a_million_uids_is_crossed_in_a_few_round_trips(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]
) -> None:
    user, tables = new_user(), Tables(mariadb_url)
    dovecot.append(user, "INBOX", mail(1))
    raise_next_uid(dovecot, user, "INBOX", 1_000_000)
    dovecot.append(user, "INBOX", mail(2))
    async with FaultProxy(("127.0.0.1", dovecot.port)) as proxy:
        commands = proxy.add(Rule(TO_SERVER, rb"FETCH", nth=0))
        async with running(plain_settings(proxy.port, dovecot, user, mariadb_url)) as app:
            await app.until_state("idling")
        assert commands.matches < 40
    assert tables.hashes() == hashes([1, 2])
    assert tables.cursor()["last_uid"] == 1_000_000
