"""`check --send-test`: the push is timed, and the test mail is out of the folder again, whatever happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ops_mail.app.options import session_options
from ops_mail.cli.check.probe_mail import SUBJECT, ProbeMail
from ops_mail.cli.check.push import push_rows
from ops_mail.cli.check.rows import Row, Verdict
from ops_mail.imap import ImapSession, open_session
from ops_mail.settings import Settings, load_settings
from tests.integration.cli.conftest import Cli, mailbox_settings
from tests.servers.dovecot import Dovecot
from tests.servers.scripted import Peer, ReceivedCommand, ScriptedImap

MAIL = b"From: a@example.org\r\nSubject: x\r\n\r\nbody\r\n"
OLD = {1: b"Message-ID: <old@example.org>\r\nSubject: old\r\n\r\nbody\r\n"}


def settings_for(port: int, user: str = "u", **more: object) -> Settings:
    values = {"IMAP_HOST": "127.0.0.1", "IMAP_PORT": port, "IMAP_SECURITY": "plain", "IMAP_USERNAME": user}
    values |= {"IMAP_PASSWORD": "test-password", "COMMAND_TIMEOUT_SECONDS": 5, "CONNECT_TIMEOUT_SECONDS": 5} | more
    return load_settings({f"OPS_MAIL_{name}": str(value) for name, value in values.items()}, None)


@asynccontextmanager
async def idler(settings: Settings) -> AsyncIterator[ImapSession]:
    """The session that waits for the push."""
    (mailbox,) = settings.mailboxes
    session = await open_session(session_options(settings, mailbox))
    try:
        await session.select(mailbox.folder, read_only=True)
        yield session
    finally:
        await session.logout(2)


async def rows_of(settings: Settings, push_seconds: float = 20) -> dict[str, Row]:
    (mailbox,) = settings.mailboxes
    async with idler(settings) as session:
        return {row.step: row for row in await push_rows(settings, mailbox, "g", session, push_seconds)}


async def test_the_push_is_timed_and_the_mail_is_gone(dovecot: Dovecot, user: str) -> None:
    dovecot.append(user, "INBOX", MAIL)
    before = dovecot.contents(user, "INBOX")
    rows = await rows_of(settings_for(dovecot.port, user))
    assert {step: row.verdict for step, row in rows.items()} == dict.fromkeys(rows, Verdict.OK)
    assert list(rows) == ["push", "clock", "test mail"]
    assert rows["push"].detail.startswith("a test mail was announced ")
    assert rows["test mail"].detail == "the test mail (UID 2) was removed"
    assert dovecot.contents(user, "INBOX").keys() == before.keys()


async def test_a_trial_that_is_cut_short_leaves_no_mail(
    dovecot: Dovecot, user: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = settings_for(dovecot.port, user)
    trial = asyncio.create_task(rows_of(settings))
    while not await asyncio.to_thread(dovecot.contents, user, "INBOX"):
        assert not trial.done()
    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial
    assert dovecot.contents(user, "INBOX") == {}
    assert "the test mail (UID 1) was removed" in capsys.readouterr().err


class Mute(ScriptedImap):
    """Takes mails, never announces one; `uids` False: as without UIDPLUS."""

    def __init__(self, *, uids: bool = True, **more: Any) -> None:
        capabilities = "IMAP4rev1 IDLE UIDPLUS" if uids else "IMAP4rev1 IDLE"
        super().__init__(mails=dict(OLD), capabilities=capabilities, **more)
        self.uids = uids
        self.deleted: list[str] = []
        self.on |= {"EXAMINE": self.select, "APPEND": self.append, "UID STORE": self.store, "UID EXPUNGE": self.expunge}

    async def select(self, peer: Peer, command: ReceivedCommand) -> None:
        await peer.send(f"* {len(self.mails)} EXISTS".encode(), b"* OK [UIDVALIDITY 7] valid")
        await peer.ok(command, "[READ-ONLY] selected")

    async def append(self, peer: Peer, command: ReceivedCommand) -> None:
        uid = max(self.mails) + 1
        self.mails[uid] = command.line.partition(b"}")[2]
        await peer.ok(command, f"[APPENDUID 7 {uid}] stored" if self.uids else "stored")

    async def store(self, peer: Peer, command: ReceivedCommand) -> None:
        self.deleted.append(command.arguments.partition(" ")[0])
        await peer.ok(command)

    async def expunge(self, peer: Peer, command: ReceivedCommand) -> None:
        del self.mails[int(command.arguments)]
        await peer.ok(command)


async def test_a_server_that_never_pushes_is_a_failure_that_names_the_settings() -> None:
    async with Mute() as server:
        rows = await rows_of(settings_for(server.port), push_seconds=0.1)
    assert rows["push"].verdict is Verdict.FAIL
    assert rows["push"].detail == "the server accepts IDLE, but announced no mail within 0.1 s"
    assert "OPS_MAIL_IDLE_SECONDS (120)" in rows["push"].advice
    assert "OPS_MAIL_POLL_SECONDS (60)" in rows["push"].advice
    assert rows["test mail"].verdict is Verdict.OK
    assert server.mails == OLD


async def test_without_uidplus_the_mail_is_found_marked_and_nothing_is_expunged() -> None:
    async with Mute(uids=False) as server:
        rows = await rows_of(settings_for(server.port), push_seconds=0.1)
        assert rows["test mail"].verdict is Verdict.WARN
        assert rows["test mail"].detail.endswith("the test mail (UID 2) is marked as deleted and stays")
        assert server.deleted == ["2"]
        assert not [line for line in server.received if b"EXPUNGE" in line]


async def test_another_mail_is_not_taken_for_it() -> None:
    """The server names a UID that is another mail's; one that came since answers to the test mail."""
    async with Mute() as server:

        async def lie(peer: Peer, command: ReceivedCommand) -> None:
            raw = command.line.partition(b"}")[2]
            found = [line for line in raw.split(b"\r\n") if line.startswith(b"Message-ID: ")]
            server.mails |= {
                2: raw,
                3: b"In-Reply-To: " + found[0].partition(b" ")[2] + b"\r\nSubject: re\r\n\r\nx\r\n",
            }
            await peer.ok(command, "[APPENDUID 7 3] stored")

        server.on["APPEND"] = lie
        rows = await rows_of(settings_for(server.port), push_seconds=0.1)
    assert rows["test mail"].detail == "the test mail (UID 2) was removed"
    assert list(server.mails) == [1, 3]


async def test_a_connection_cut_while_it_was_stored_leaves_no_mail() -> None:
    async with Mute() as server:

        async def store_and_cut(peer: Peer, command: ReceivedCommand) -> None:
            server.mails[2] = command.line.partition(b"}")[2]
            peer.cut_off()
            raise ConnectionResetError

        server.on["APPEND"] = store_and_cut
        rows = await rows_of(settings_for(server.port))
    assert rows["push"].verdict is Verdict.FAIL
    assert rows["test mail"].detail == "the test mail (UID 2) was removed"
    assert server.mails == OLD


async def test_a_server_that_refuses_it_is_told_and_nothing_is_deleted() -> None:
    async with Mute() as server:

        async def refuse(peer: Peer, command: ReceivedCommand) -> None:
            await peer.no(command, "[OVERQUOTA] full")

        server.on["APPEND"] = refuse
        rows = await rows_of(settings_for(server.port))
        assert "[OVERQUOTA] full" in rows["push"].detail
        assert rows["test mail"].detail == "none was stored"
        assert server.deleted == []


async def test_a_mail_that_cannot_be_deleted_is_a_failure_that_tells_how_to_find_it() -> None:
    async with Mute() as server:

        async def refuse(peer: Peer, command: ReceivedCommand) -> None:
            await peer.no(command, "not yours")

        server.on["UID STORE"] = refuse
        rows = await rows_of(settings_for(server.port), push_seconds=0.1)
    assert rows["test mail"].verdict is Verdict.FAIL
    assert "not yours" in rows["test mail"].detail
    assert SUBJECT in rows["test mail"].advice


async def test_a_polled_folder_gets_no_mail() -> None:
    async with Mute() as server:
        server.capabilities = "IMAP4rev1 UIDPLUS"
        rows = await rows_of(settings_for(server.port))
        assert {row.verdict for row in rows.values()} == {Verdict.SKIPPED}
        assert server.commands("APPEND") == []


@pytest.mark.parametrize("after", ["move:Done", "delete", "keep"])
async def test_a_mail_that_a_running_ops_mail_took_away_is_explained(after: str) -> None:
    async with Mute() as server:

        async def take_away(peer: Peer, command: ReceivedCommand) -> None:
            await peer.ok(command, "[APPENDUID 7 2] stored")

        server.on["APPEND"] = take_away
        rows = await rows_of(settings_for(server.port, IMAP_AFTER_LANDING=after), push_seconds=0.1)
    row = rows["test mail"]
    assert row.detail.startswith("the test mail is no longer in INBOX")
    assert row.verdict is (Verdict.OK if after == "delete" else Verdict.WARN)
    assert ("in Done" in row.advice) is (after == "move:Done")


def test_the_mail_says_what_it_is_and_is_never_the_same() -> None:
    one, other = ProbeMail.new(), ProbeMail.new()
    assert f"Subject: {SUBJECT}\r\n".encode() in one.raw
    assert b"Auto-Submitted: auto-generated\r\n" in one.raw
    assert one.is_headed_by(one.raw)
    assert not other.is_headed_by(one.raw)


def test_nothing_is_sent_unasked(cli: Cli, dovecot: Dovecot, user: str) -> None:
    settings = mailbox_settings(dovecot, user)
    refused = cli("check", "--send-test", **settings)
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert dovecot.contents(user, "INBOX") == {}
    done = cli("check", "--send-test", "--yes", "--json", **settings)
    assert done.returncode == 0, done.stdout
    rows = [row for row in json.loads(done.stdout)["checks"] if row["group"] == f"{user}/INBOX"]
    assert [(row["step"], row["verdict"]) for row in rows][-3:] == [
        ("push", "ok"),
        ("clock", "ok"),
        ("test mail", "ok"),
    ]
    assert dovecot.contents(user, "INBOX") == {}
