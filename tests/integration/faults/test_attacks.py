"""Servers that lie, stall, refuse single mails or flood: nothing is lost, delayed for long, or taken for dead."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from ops_mail.app.spool_root import spool_root
from ops_mail.core.health import stuck_reasons
from ops_mail.errors import Failure, ImapError
from ops_mail.listener.spool import Spool
from tests.faults.harness import running
from tests.integration.imap.opening import options, selected
from tests.servers.product import OpsMail
from tests.servers.scripted import Peer, ReceivedCommand, ScriptedImap
from tests.servers.tables import Tables


def mail(number: int) -> bytes:
    return b"Subject: %d\r\n\r\nbody %d\r\n" % (number, number)


def settings(server: ScriptedImap, folder: Path, **more: object) -> dict[str, object]:
    return {
        "IMAP_HOST": "127.0.0.1",
        "IMAP_PORT": server.port,
        "IMAP_SECURITY": "plain",
        "IMAP_USERNAME": "ops",
        "IMAP_PASSWORD": "secret",
        "DATABASE_URL": f"sqlite+aiosqlite:///{folder}/mail.db",
        **more,
    }


def tables(folder: Path) -> Tables:
    return Tables(f"sqlite+aiosqlite:///{folder}/mail.db")


async def usual_fetch(peer: Peer, command: ReceivedCommand) -> None:
    uid_set, _, items = command.arguments.partition(" ")
    lines = [peer.server.fetch_line(uid, items) for uid in peer.server.chosen(uid_set)]
    await peer.send(*lines, f"{command.tag} OK done".encode())


@pytest.mark.parametrize("told", ["9223372036854775808", "9" * 20, "9" * 5001], ids=["2^63", "10^20", "10^5001"])
async def test_a_size_that_fits_no_column_costs_no_mail(told: str, tmp_path: Path) -> None:
    server = ScriptedImap({uid: mail(uid) for uid in (1, 2, 3)})

    async def fetch(peer: Peer, command: ReceivedCommand) -> None:
        uid_set, _, items = command.arguments.partition(" ")
        lines = [peer.server.fetch_line(uid, items) for uid in peer.server.chosen(uid_set)]
        lines = [
            re.sub(rb"RFC822.SIZE \d+", b"RFC822.SIZE " + told.encode(), line) if b"UID 2 " in line else line
            for line in lines
        ]
        await peer.send(*lines, f"{command.tag} OK done".encode())

    server.on["UID FETCH"] = fetch
    async with server, running(settings(server, tmp_path)) as app:
        await app.until_state("idling")
    rows = tables(tmp_path).rows("SELECT uid, subject, status FROM ops_mail_message ORDER BY uid")
    assert [tuple(row.values()) for row in rows] == [(1, "1", "landed"), (2, "2", "landed"), (3, "3", "landed")]


async def test_an_impossible_uid_validity_is_a_failure_with_a_reason_and_no_crash(tmp_path: Path) -> None:
    server = ScriptedImap({1: mail(1)})
    peers = server.peers

    async def select(peer: Peer, command: ReceivedCommand) -> None:
        await peer.send(b"* 1 EXISTS", b"* OK [UIDVALIDITY " + b"9" * 8000 + b"] x", f"{command.tag} OK x".encode())

    server.on["SELECT"] = select
    async with server, running(settings(server, tmp_path)) as app:
        await app.until(lambda: len(peers) >= 3, "third attempt")
        assert "no UIDVALIDITY" in (app.mailbox.last_error or "")
        assert app.states.count("standby") == 0


async def test_many_mails_that_the_server_refuses_do_not_hold_up_the_others_ever_longer(tmp_path: Path) -> None:
    server = ScriptedImap({uid: mail(uid) for uid in range(1, 14)})
    refused = range(2, 13, 2)

    async def fetch(peer: Peer, command: ReceivedCommand) -> None:
        uid_set, _, items = command.arguments.partition(" ")
        if "BODY" in items and any(uid in refused for uid in peer.server.chosen(uid_set)):
            await peer.no(command, "cannot build this message")
        else:
            await usual_fetch(peer, command)

    server.on["UID FETCH"] = fetch
    more = {"BACKOFF_INITIAL_SECONDS": "0.02", "BACKOFF_MAX_SECONDS": "300"}
    async with server, running(settings(server, tmp_path), **more) as app:
        # Six failures for each of six mails: 0.02 s doubled 36 times would be years.
        await app.until_state("idling", seconds=20)
    rows = tables(tmp_path).rows("SELECT uid, status FROM ops_mail_message ORDER BY uid")
    assert [row["uid"] for row in rows] == list(range(1, 14))
    assert [row["uid"] for row in rows if row["status"] == "quarantined"] == list(refused)


async def test_a_command_that_lasts_because_the_line_is_slow_is_not_a_stuck_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops_mail.supervisor.supervisor.stuck_reasons", partial(stuck_reasons, slack_seconds=0.5))
    monkeypatch.setattr("ops_mail.listener.sync._MARGIN_SECONDS", 0.2)
    monkeypatch.setattr("ops_mail.listener.session_loop._MARGIN_SECONDS", 0.2, raising=False)
    content = mail(1) + b"x" * 60_000
    server = ScriptedImap({1: content})

    async def fetch(peer: Peer, command: ReceivedCommand) -> None:
        _, _, items = command.arguments.partition(" ")
        if "BODY" not in items:
            await usual_fetch(peer, command)
            return
        answer = peer.server.fetch_line(1, items) + f"\r\n{command.tag} OK done\r\n".encode()
        for start in range(0, len(answer), 8000):
            await peer.send_raw(answer[start : start + 8000])
            await asyncio.sleep(0.5)

    server.on["UID FETCH"] = fetch
    verdicts: list[int] = []
    async with server, running(settings(server, tmp_path), COMMAND_TIMEOUT_SECONDS="1") as app:
        while app.mailbox.state.value != "idling":
            verdicts.append((await app.get("/healthz"))[0])
            await asyncio.sleep(0.1)
        assert len(app.landed) == 1
    assert set(verdicts) == {200}


async def test_a_flood_of_short_lines_ends_the_session_before_it_fills_the_memory() -> None:
    server = ScriptedImap({1: mail(1)})

    async def fetch(peer: Peer, command: ReceivedCommand) -> None:
        while True:
            await peer.send_raw(b"* OK\r\n" * 8000)

    server.on["UID FETCH"] = fetch
    async with server, selected(options(server)) as session:
        with pytest.raises(ImapError) as caught:
            await session.highest_uid()
    assert caught.value.failure is Failure.PROTOCOL


async def relisted(peer: Peer, command: ReceivedCommand, date: bytes) -> None:
    """The usual answer with another INTERNALDATE item, or none."""
    uid_set, _, items = command.arguments.partition(" ")
    lines = [peer.server.fetch_line(uid, items) for uid in peer.server.chosen(uid_set)]
    await peer.send(*(re.sub(rb' INTERNALDATE "[^"]*"', date, line) for line in lines), f"{command.tag} OK x".encode())


@pytest.mark.parametrize("second", [b' INTERNALDATE "08-Feb-2024 10:20:30 +0800"', b' INTERNALDATE "rubbish"', b""])
async def test_dates_that_wander_between_sessions_land_no_mail_twice(second: bytes, tmp_path: Path) -> None:
    server = ScriptedImap({uid: mail(uid) for uid in (1, 2, 3)})
    async with server:
        async with running(settings(server, tmp_path)) as app:
            await app.until_state("idling")
        server.on["UID FETCH"] = partial(relisted, date=second)
        async with running(settings(server, tmp_path)) as app:
            await app.until_state("idling")
            server.add(4, mail(4))
            await app.until(lambda: len(app.landed) == 1, "new mail")
    rows = tables(tmp_path).rows("SELECT uid_validity, uid FROM ops_mail_message ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [(7, 1), (7, 2), (7, 3), (7, 4)]


async def test_other_mails_at_the_same_uids_with_other_dates_are_still_noticed(tmp_path: Path) -> None:
    server = ScriptedImap({uid: mail(uid) for uid in (1, 2, 3)})
    async with server:
        async with running(settings(server, tmp_path)) as app:
            await app.until_state("idling")
        server.mails = {uid: mail(uid + 5) for uid in (1, 2, 3)}
        server.on["UID FETCH"] = partial(relisted, date=b' INTERNALDATE "08-Feb-2024 10:20:30 +0800"')
        async with running(settings(server, tmp_path)) as app:
            await app.until_state("idling")
    assert sorted(tables(tmp_path).value("SELECT json_group_array(subject) FROM ops_mail_message")) == sorted(
        '["1","2","3","6","7","8"]'
    )


async def test_a_server_that_announces_mail_in_every_answer_is_not_asked_without_a_pause(tmp_path: Path) -> None:
    server = ScriptedImap({uid: mail(uid) for uid in (1, 2, 3)})

    async def fetch(peer: Peer, command: ReceivedCommand) -> None:
        await peer.send(b"* 0 RECENT", b"* 1 RECENT")
        await usual_fetch(peer, command)

    server.on["UID FETCH"] = fetch
    async with server, running(settings(server, tmp_path)) as app:
        await app.until(lambda: app.mailbox.last_sync_at is not None, "sync that counts as drained")
        server.mails[4] = mail(4)
        await app.until(lambda: len(app.landed) == 4, "new mail")
        await asyncio.sleep(2)
        assert len(server.received) < 60  # hundreds in each second otherwise


def test_a_stop_while_the_program_still_loads_ends_with_exit_code_0(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPS_MAIL_")}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[3])
    command = [sys.executable, "-X", "importtime", "-m", "ops_mail"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.rstrip().endswith("click.core"):
                break
        process.terminate()
        rest = process.stderr.read()
        assert (process.wait(20), "Traceback" in rest) == (0, False)


def test_signals_repeated_until_the_very_end_do_not_change_the_exit_code(tmp_path: Path) -> None:
    product = OpsMail(tmp_path, {"ENABLED": "false"}).start()
    try:
        while product.process.poll() is None:
            product.signal(signal.SIGTERM)
            product.signal(signal.SIGINT)
            time.sleep(0.001)
        assert product.process.returncode == 0, product.explain()
    finally:
        product.close()


async def test_a_spool_folder_that_was_cleaned_away_comes_back(tmp_path: Path) -> None:
    root = tmp_path / "spool"
    root.mkdir()
    spool = Spool(root)
    await spool.open()
    shutil.rmtree(root)
    await spool.open()
    assert spool.path.is_dir()
    await spool.close()


def test_a_folder_with_a_made_up_name_does_not_keep_the_process_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"ops-mail-spool-{'9' * 30}-x").mkdir()
    (tmp_path / "ops-mail-spool-\u00b2-x").mkdir()
    with spool_root() as path:
        assert path.is_dir()


@pytest.mark.parametrize("header", [True, False], ids=["header given", "nothing given"])
async def test_what_the_server_refused_for_a_while_is_fetched_again_later(
    header: bool, database_url: str, tmp_path: Path
) -> None:
    content = b"Subject: 2\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\ntext\r\n--x\r\n"
    content += b"Content-Disposition: attachment; filename=a.bin\r\n\r\ndata\r\n--x--\r\n"
    server = ScriptedImap({1: mail(1), 2: content, 3: mail(3)})
    in_trouble = True

    async def fetch(peer: Peer, command: ReceivedCommand) -> None:
        refused = "HEADER" not in command.arguments or not header
        if (
            in_trouble
            and "BODY" in command.arguments
            and refused
            and 2 in peer.server.chosen(command.arguments.split()[0])
        ):
            await peer.no(command, "[SERVERBUG] internal error")
        else:
            await usual_fetch(peer, command)

    server.on["UID FETCH"] = fetch
    more = {"BACKOFF_INITIAL_SECONDS": "0.02", "IDLE_SECONDS": "1", "VERIFY_INTERVAL_SECONDS": "1"}
    async with server, running(settings(server, tmp_path, DATABASE_URL=database_url), **more) as app:
        await app.until(lambda: len(app.landed) == 3, "three rows")
        before = Tables(database_url).rows("SELECT id, uid, status FROM ops_mail_message ORDER BY uid")
        in_trouble = False
        await app.until(lambda: len(app.landed) == 4, "second landing of the mail")
    after = Tables(database_url).rows("SELECT id, uid, status FROM ops_mail_message ORDER BY uid")
    assert [row["status"] for row in before] == ["landed", "oversize" if header else "quarantined", "landed"]
    assert after == [row | {"status": "landed"} for row in before]
    assert Tables(database_url).hashes()[hashlib.sha256(content).hexdigest()] == 1
    assert Tables(database_url).rows("SELECT filename, message_pk FROM ops_mail_attachment") == [
        {"filename": "a.bin", "message_pk": before[1]["id"]}
    ]
