"""A process in every kind of trouble, its secrets in mounted files: no output, and no text of a failure, holds one."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.integration.secrets import leaky_handler, outputs
from tests.integration.secrets.spelling import leaks
from tests.servers.dovecot import Dovecot
from tests.servers.mariadb import MariaDb
from tests.servers.product import OpsMail
from tests.servers.s3 import S3Server
from tests.servers.scripted import Peer, ReceivedCommand, ScriptedImap
from tests.servers.tables import Tables

SUBJECT, BODY = "Merger-of-two-giants", "the-price-is-seven"
MAIL = f"Subject: {SUBJECT}\r\n\r\n{BODY}\r\n".encode()

WRONG, TLS = "Never/Word+4=&%45", "Seal/Word+5=&%46"
QUOTED, CODED, TOKEN = 'Sp"ok\\Word+6=&%47', "Wörd/übel+7=&%48", "Bear/Word+8=&%49"
PAGE, S3_KEY, S3_TOKEN = "Page/Word+9=&%4A", "Pail/Word+1=&%4C", "Pass/Word+2=&%4D"
FAILING = {"wrong": "auth", "tls": "tls", "quoted": "auth", "coded": "auth", "token": "auth"}

COMMANDS = ("check", "check --json", "status", "status --json", "verify", "verify --json", "dead list", "dead show 1")
CODES = dict.fromkeys(COMMANDS[:6], 1)

MAILBOXES = """
[[mailbox]]
name = "good"
host = "localhost"
port = {tls_port}
username = "ops"
password_file = "good"
ca_file = "{ca_file}"

[[mailbox]]
name = "wrong"
host = "localhost"
port = {tls_port}
username = "ops"
password = '{wrong}'
ca_file = "{ca_file}"

[[mailbox]]
name = "tls"
host = "localhost"
port = {tls_port}
username = "ops"
password = '{tls}'
"""
ECHOING = """
[[mailbox]]
name = "{name}"
host = "127.0.0.1"
port = {port}
security = "plain"
username = "ops"
password = '{password}'
auth = "{auth}"
"""


async def repeat_all(peer: Peer, command: ReceivedCommand) -> None:
    """What broken servers and test servers do: the answer holds the command as it came."""
    await peer.no(command, f"[AUTHENTICATIONFAILED] cannot do: {command.line.decode()}")


def echoing(**more: str) -> ScriptedImap:
    server = ScriptedImap(**more)  # type: ignore[arg-type] # the names of texts
    server.on["LOGIN"] = server.on["AUTHENTICATE"] = repeat_all
    return server


def mount(folder: Path, dovecot: Dovecot, url: str, mailboxes: str) -> dict[str, object]:
    """A folder as Kubernetes mounts a secret, every file behind two links; the settings that read it."""
    contents = {"good": dovecot.password, "database-url": url, "page": PAGE, "mailboxes.toml": mailboxes}
    real = folder / "mounted" / "..2026_11_29"
    real.mkdir(parents=True)
    (folder / "mounted" / "..data").symlink_to(real.name)
    for name, content in contents.items():
        (real / name).write_text(content + "\n")
        (folder / "mounted" / name).symlink_to(f"..data/{name}")
    shutil.copy(leaky_handler.__file__, folder)
    return {
        "MAILBOXES_FILE": "mounted/mailboxes.toml",
        "DATABASE_URL_FILE": "mounted/database-url",
        "HTTP_TOKEN_FILE": "mounted/page",
        "STORE_URL": "s3://bucket/mails",
        "LOG_DIR": folder / "logs",
        "HANDLER": "leaky_handler:handle",
        "HANDLER_MAX_ATTEMPTS": 1,
        "BACKOFF_MAX_SECONDS": 1,
        "LEASE_SECONDS": 3,
    }


def fail_in_every_way(process: OpsMail, folder: Path, dovecot: Dovecot, database: MariaDb, url: str) -> dict[str, str]:
    """All outputs after all failures."""
    tables = Tables(url)
    with process:
        dead = "SELECT COUNT(*) FROM ops_mail_message WHERE status = 'dead'"
        process.wait_until(lambda: tables.exist() and tables.value(dead) == 2, "dead mails")
        for name, reason in FAILING.items():
            process.wait_for_line("session_failed", mailbox=name, reason=reason)
        found = outputs.command_lines(process) | outputs.endpoints(process, PAGE)
        found |= outputs.commands(process, COMMANDS, CODES, folder) | outputs.stored_rows(url)
        database.kill()
        process.wait_until(lambda: process.get_json("/readyz")[1]["database"] == "down", "a database that is down")
        dovecot.append("ops", "INBOX", MAIL)
        process.wait_for_line("guard_unreachable", mailbox="good")
        found |= {f"{name}, without a database": text for name, text in outputs.endpoints(process, PAGE).items()}
        database.restart()
        process.wait_until(lambda: tables.value(dead) == 3, "the mail that came meanwhile")
        assert process.terminate() == 0
    return found


async def test_no_output_of_a_process_in_trouble_holds_a_secret(
    guarded_dovecot: Dovecot,
    own_mariadb: MariaDb,
    guarded_url: str,
    bucket: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = {"AWS_SECRET_ACCESS_KEY": S3_KEY, "AWS_SESSION_TOKEN": S3_TOKEN}
    for name, value in (bucket.environment() | keys).items():
        monkeypatch.setenv(name, value)
    guarded_dovecot.append_many("ops", "INBOX", [MAIL, MAIL])
    mailboxes = MAILBOXES.format(
        tls_port=guarded_dovecot.tls_port, ca_file=guarded_dovecot.ca_file, wrong=WRONG, tls=TLS
    )
    plain = echoing()
    coded = echoing(capabilities="IMAP4rev1 IDLE SASL-IR AUTH=PLAIN AUTH=XOAUTH2")
    async with plain, coded:
        for name, server, secret, auth in (
            ("quoted", plain, QUOTED, "password"),
            ("coded", coded, CODED, "password"),
            ("token", coded, TOKEN, "oauth2"),
        ):
            mailboxes += ECHOING.format(name=name, port=server.port, password=secret, auth=auth)
        process = OpsMail(tmp_path, mount(tmp_path, guarded_dovecot, guarded_url, mailboxes))
        found = await asyncio.to_thread(fail_in_every_way, process, tmp_path, guarded_dovecot, own_mariadb, guarded_url)
    logged = outputs.logs(process, tmp_path / "logs")
    found |= logged
    secrets = [WRONG, TLS, QUOTED, CODED, TOKEN, PAGE, S3_KEY, S3_TOKEN, guarded_dovecot.password, guarded_url]
    secrets.append(str(sa.make_url(guarded_url).password))
    assert leaks(found, secrets) == []
    for words in ("cannot do: ", "no connection", "connecting with", "AWS_SESSION_TOKEN is"):
        assert words in found["standard output and error"], "what failed is told"
    assert "cannot connect to" in found["table ops_mail_attempt"]
    for content in (SUBJECT, BODY):
        assert [name for name, text in logged.items() if content in text] == []
