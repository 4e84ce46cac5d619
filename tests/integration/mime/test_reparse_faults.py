"""`ops-mail reparse` when something goes wrong, and beside a running process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from ops_mail.cli.reparsing import Failed, Tools, reparse
from ops_mail.core.ids import FolderKey, UidValidity
from ops_mail.core.mail import PreparedMail
from ops_mail.listener.spool import Spool
from ops_mail.mime.pool import ParserPool
from ops_mail.mime.prepare import PrepareLimits
from ops_mail.store import Store, open_store
from ops_mail.store.reparse import Candidate, ReparseStore
from ops_mail.store.reparse_run import TakenOver, Tally, begin_run, save_run
from ops_mail.store.rows import MailRow, RowLimits, mail_row
from tests.faults.harness import running
from tests.integration.listener.settings import imap_settings
from tests.integration.mime.stored import KEY, attachments, audits, land, messages, spoil, start_reparse, without
from tests.servers.dovecot import Dovecot
from tests.servers.process import SqlServer
from tests.servers.tables import Tables


def small(number: int) -> bytes:
    return (
        f"From: a@example.org\r\nSubject: mail {number}\r\nMessage-ID: <{number}@x>\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\n\r\n'
        f"body of {number}\r\n--b\r\nContent-Disposition: attachment; filename=f.txt\r\n\r\nfile {number}\r\n--b--\r\n"
    ).encode()


@asynccontextmanager
async def tools(
    url: str, folder: Path, told: list[Failed], limits: PrepareLimits | None = None, opened: Store | None = None
) -> AsyncIterator[Tools]:
    store = opened or open_store(url, lease_seconds=10)
    pool = ParserPool(max_message_bytes=52_428_800, workers=1, limits=limits)
    spool = Spool(folder)
    await spool.open()
    try:
        yield Tools(store.database, ReparseStore(store, "eve"), pool, spool, told.append, lambda _run: None)
    finally:
        await pool.close()
        await spool.close()
        await store.close(2)


async def whole_run(parts: Tools) -> Tally:
    run = await begin_run(parts.database, None, None, "1", "eve")
    return (await reparse(parts, run, await parts.store.last_id())).tally


def test_a_mail_that_still_cannot_be_parsed_is_a_failure_and_keeps_its_row(database_url: str, tmp_path: Path) -> None:
    slow = b"Subject: slow\r\n\r\n" + b"line with = signs & <tags> to look at\r\n" * 200_000
    land(database_url, [small(1), slow, small(3)])
    Tables(database_url).execute("UPDATE ops_mail_message SET status = 'quarantined', last_error = 'x' WHERE uid = 2")
    spoil(database_url)
    before = messages(database_url)
    told: list[Failed] = []

    async def work() -> Tally:
        async with tools(database_url, tmp_path, told, PrepareLimits(mail_seconds=0.02)) as parts:
            return await whole_run(parts)

    assert asyncio.run(work()) == Tally(parsed=2, changed=2, failed=1)
    assert told == [Failed(before[1]["id"], "parsing took longer than 0.02 s")]
    after = messages(database_url)
    assert after[1] == before[1]
    assert [after[0]["subject"], after[2]["subject"]] == ["mail 1", "mail 3"]


def test_a_record_that_the_database_refuses_costs_no_other_mail(
    sql_server: SqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = sql_server.create_database()
    land(url, [small(number) for number in range(5)])
    good = messages(url)
    spoil(url)
    before = messages(url)

    def overlong(
        key: FolderKey, numbering: UidValidity, mail: PreparedMail, limits: RowLimits, now: datetime
    ) -> MailRow:
        row = mail_row(key, numbering, mail, limits, now)
        if mail.mail.message_id == "2@x":
            row.values["message_id"] = "x" * 5_000
        return row

    monkeypatch.setattr("ops_mail.store.reparse.mail_row", overlong)
    told: list[Failed] = []

    async def work() -> Tally:
        async with tools(url, tmp_path, told) as parts:
            return await whole_run(parts)

    assert asyncio.run(work()) == Tally(parsed=4, changed=4, failed=1)
    assert [one.message_pk for one in told] == [before[2]["id"]]
    assert "refused" in told[0].reason
    after = messages(url)
    assert after[2] == before[2]
    del after[2], good[2]
    assert without(after, "updated_at") == without(good, "updated_at")


class Removing(ReparseStore):
    """Retention removes a mail's content at the worst moment: when it is listed, or when it has been parsed."""

    def __init__(self, store: Store, url: str, moment: str) -> None:
        super().__init__(store, "eve")
        self._tables = Tables(url)
        self._moment = moment

    def _remove(self, moment: str) -> None:
        if moment == self._moment:
            hashes = [row["raw_sha256"] for row in self._tables.rows("SELECT * FROM ops_mail_message WHERE uid = 2")]
            self._tables.execute("UPDATE ops_mail_message SET content_removed_at = landed_at WHERE uid = 2")
            self._tables.execute("DELETE FROM ops_mail_blob WHERE sha256 = :hash", hash=hashes[0])

    async def page(self, after: int, until: int, mailbox: str | None, limit: int) -> list[Candidate]:
        found = await super().page(after, until, mailbox, limit)
        self._remove("listed")
        return found

    async def differing(self, mails: Sequence[tuple[Candidate, PreparedMail]]) -> list[tuple[Candidate, PreparedMail]]:
        found = await super().differing(mails)
        self._remove("parsed")
        return found


@pytest.mark.parametrize("moment", ["listed", "parsed"])
def test_a_mail_whose_content_is_removed_meanwhile_is_skipped(database_url: str, tmp_path: Path, moment: str) -> None:
    land(database_url, [small(number) for number in range(3)])
    spoil(database_url)
    before = messages(database_url)
    told: list[Failed] = []

    async def work() -> Tally:
        opened = open_store(database_url, lease_seconds=10)
        async with tools(database_url, tmp_path, told, opened=opened) as parts:
            return await whole_run(replace(parts, store=Removing(opened, database_url, moment)))

    assert asyncio.run(work()) == Tally(parsed=2, changed=2, skipped=1)
    assert told == []
    after = messages(database_url)
    assert without([after[1]], "content_removed_at") == without([before[1]], "content_removed_at")
    assert [after[0]["subject"], after[2]["subject"]] == ["mail 0", "mail 2"]


def test_a_second_process_takes_a_run_over_and_the_first_one_stops(database_url: str, tmp_path: Path) -> None:
    land(database_url, [small(number) for number in range(3)])

    async def work() -> None:
        async with tools(database_url, tmp_path, []) as parts:
            first = await begin_run(parts.database, None, None, "1", "eve")
            other = await begin_run(parts.database, KEY.mailbox, None, "1", "eve")
            assert not first.resumed
            assert not other.resumed, "a run over one mailbox is another run"
            await save_run(parts.database, first)
            second = await begin_run(parts.database, None, None, "1", "eve")
            assert second.resumed
            assert second.audit_id == first.audit_id
            with pytest.raises(TakenOver, match="another `ops-mail reparse`"):
                await reparse(parts, first, await parts.store.last_id())
            await save_run(parts.database, other)
            assert (await reparse(parts, second, await parts.store.last_id())).tally == Tally(parsed=3)
            assert not (await begin_run(parts.database, None, None, "1", "eve")).resumed, "it was finished"
            assert not (await begin_run(parts.database, None, None, "2", "eve")).resumed, "of another version"

    asyncio.run(work())
    assert len(audits(database_url, "reparsed")) == 4


async def test_beside_a_running_process_every_mail_is_handled_once_and_restored(
    dovecot: Dovecot, database_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    """Old mails are parsed again while a handler takes them and new ones land."""
    old, new = 60, 60
    user = new_user()
    await asyncio.to_thread(land, database_url, [small(number) for number in range(old)])
    good, files = without(messages(database_url), "updated_at"), attachments(database_url)
    spoil(database_url)
    dovecot.append_many(user, "INBOX", [small(number) for number in range(old, old + new)])
    settings = imap_settings(dovecot, user, database_url, HANDLER="tests.integration.mime.handling:look")
    async with running(settings, COMMAND_TIMEOUT_SECONDS=20, LEASE_SECONDS=20) as app:
        with start_reparse(database_url, tmp_path, "--since", "0") as process:
            out, err = await asyncio.to_thread(process.communicate)
        assert (process.returncode, err) == (0, "")
        assert out.endswith("skipped 0, failed 0\n")
        tables = Tables(database_url)
        count = "SELECT COUNT(*) FROM ops_mail_message WHERE status = 'done'"
        await app.until(lambda: tables.value(count) == old + new, "all of them done", 60)
    handled = ("status", "attempts", "updated_at", "lease_id", "lease_until")
    assert without(messages(database_url)[:old], *handled) == without(good, *handled)
    assert attachments(database_url)[:old] == files
    assert tables.count_of("ops_mail_attachment") == old + new
    assert {row["attempts"] for row in messages(database_url)} == {1}
    assert tables.count_of("ops_mail_attempt") == old + new
