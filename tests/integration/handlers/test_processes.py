"""Real processes: sharing the work by role, ending in time with handlers at work, refusing what cannot be a handler."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.handlers.killing import Plan, kill_at_random
from tests.handlers.seeding import seed_landed
from tests.servers.commands import CommandLine, environment_with
from tests.servers.dovecot import Dovecot
from tests.servers.mariadb import MariaDb
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

GRACE = 6

HANDLERS = """
import os, threading, time, asyncio

def share(mail):
    time.sleep(0.05)
    return {"pid": os.getpid()}

def hang(mail):
    time.sleep(3600)

async def hang_async(mail):
    await asyncio.sleep(3600)

async def hang_in_aid(mail):
    await asyncio.to_thread(time.sleep, 3600)

def leaves_a_thread(mail):
    threading.Thread(target=time.sleep, args=(3600,)).start()
    time.sleep(3600)

def spins(mail):
    while True:
        pass

async def deaf(mail):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
"""


def consumer(folder: Path, url: str, handler: str, *, name: str = "one", **more: object) -> OpsMail:
    folder.mkdir(exist_ok=True)
    (folder / "handlers_of_test.py").write_text(HANDLERS)
    settings = {"ROLE": "consumer", "DATABASE_URL": url, "HANDLER": f"handlers_of_test:{handler}",
                "SHUTDOWN_GRACE_SECONDS": GRACE, **more}  # fmt: skip
    return OpsMail(folder, settings, name=name)


def test_a_leader_and_two_consumers_share_the_work(dovecot: Dovecot, mariadb: MariaDb, tmp_path: Path) -> None:
    url, user = mariadb.create_database(), "share@example.org"
    raws = [f"Subject: {number}\r\n\r\nx\r\n".encode() for number in range(150)]
    dovecot.append_many(user, "INBOX", raws)
    (tmp_path / "handlers_of_test.py").write_text(HANDLERS)
    leader = OpsMail(
        tmp_path,
        {
            "ROLE": "leader", "IMAP_HOST": "127.0.0.1", "IMAP_PORT": dovecot.tls_port,
            "IMAP_CA_FILE": dovecot.ca_file, "IMAP_USERNAME": user, "IMAP_PASSWORD": dovecot.password,
            "DATABASE_URL": url, "HANDLER": "handlers_of_test:share", "HANDLER_CONCURRENCY": 2,
        },
        name="leader",
    )  # fmt: skip
    others = [consumer(tmp_path, url, "share", name=f"consumer{n}", HANDLER_CONCURRENCY=2) for n in (1, 2)]
    processes = [leader, *others]
    try:
        for other in others:
            other.launch()
        for other in others:
            other.wait_for_line("handlers_started", seconds=60)
        leader.launch()
        tables = Tables(url)
        leader.wait_until(lambda: tables.count() == 150, "all landed", 60)
        query = "SELECT COUNT(*) FROM ops_mail_message WHERE status = 'done'"
        leader.wait_until(lambda: tables.value(query) == 150, "all done", 60)
        assert [process.terminate() for process in processes] == [0, 0, 0]
    finally:
        for process in processes:
            process.close()
    took_part = {row["instance"].split(":")[0] for row in tables.rows("SELECT instance FROM ops_mail_attempt")}
    assert took_part == {"leader", "consumer1", "consumer2"}
    assert tables.value("SELECT COUNT(*) FROM ops_mail_attempt") == 150, "none was handled twice"
    first = {process.name: process.lines()[0] for process in processes}
    words = ("role", "instance", "listener", "handlers", "maintenance")
    assert [first["leader"][word] for word in words] == ["leader", "leader", "on", "on", "on"]
    assert [first["consumer1"][word] for word in words] == ["consumer", "consumer1", "off", "on", "on"]
    assert not any("guard" in line["event"] or "imap" in line["logger"] for line in others[0].lines())


@pytest.mark.parametrize("handler", ["hang", "hang_async", "hang_in_aid", "leaves_a_thread", "spins", "deaf", "share"])
def test_sigterm_ends_the_process_in_time_whatever_its_handlers_do(tmp_path: Path, handler: str) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/ops-mail.db"
    seed_landed(url, 3)
    process = consumer(tmp_path / "run", url, handler, HANDLER_CONCURRENCY=2)
    try:
        process.launch()
        tables = Tables(url)
        query = "SELECT COUNT(*) FROM ops_mail_message WHERE status IN ('processing', 'done')"
        process.wait_until(lambda: tables.value(query) >= 2, "handlers at work", 60)
        time.sleep(0.5)
        started = time.monotonic()
        assert process.terminate() == 0, process.explain()
        assert time.monotonic() - started <= GRACE + 1, process.explain()
    finally:
        process.close()
    assert "the grace period is over" not in process.log_text(), "it ended in order"
    if handler == "share":
        return
    assert tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status = 'processing'") == 0
    assert tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status = 'retry' AND attempts_forgiven = 1") == 2


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        ("no_such_module:handle", "there is no module 'no_such_module'"),
        ("handlers_of_test:no_such", "handlers_of_test has no 'no_such'"),
        ("handlers_of_test:threading", "is not callable"),
        ("asyncio:Event", "is a class"),
        ("os:getcwd", "cannot be called with one mail"),
        ("raises_at_import:handle", "importing 'raises_at_import' failed with ZeroDivisionError"),
    ],
)
def test_what_cannot_be_a_handler_is_refused_at_the_start(
    command_line: CommandLine, tmp_path: Path, handler: str, says: str
) -> None:
    (tmp_path / "handlers_of_test.py").write_text(HANDLERS)
    (tmp_path / "raises_at_import.py").write_text("1 / 0\n")
    settings = {"ROLE": "consumer", "DATABASE_URL": "sqlite+aiosqlite:///x.db", "HANDLER": handler, "HTTP_PORT": 0}
    env = environment_with(**{f"OPS_MAIL_{name}": value for name, value in settings.items()})
    done = command_line.run((), env, tmp_path)
    assert done.returncode == 78
    assert "OPS_MAIL_HANDLER: " in done.stderr.decode()
    assert says in done.stderr.decode()


def test_consumers_that_are_killed_lose_nothing(mariadb: MariaDb, tmp_path: Path) -> None:
    print(kill_at_random(Plan(mariadb.create_database(), tmp_path, mails=90, kills=3, consumers=2, limit=110)))
