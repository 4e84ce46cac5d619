"""A process that does its job, with a secret in every variable that may hold one: no output has one in it."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.integration.secrets import outputs
from tests.integration.secrets.spelling import leaks
from tests.servers.dovecot import Dovecot
from tests.servers.product import OpsMail
from tests.servers.s3 import S3Server
from tests.servers.tables import Tables

SUBJECT, BODY, SENDER = "Merger-of-two-giants", "the-price-is-seven", "somebody-known@example.org"
MAIL = f"From: {SENDER}\r\nSubject: {SUBJECT}\r\nMessage-ID: <id@example.org>\r\n\r\n{BODY}\r\n".encode()
BROKEN = f"Subject: =?utf-8?b?{SUBJECT}\r\nContent-Type: {BODY}; charset={SUBJECT}\r\nDate: {BODY}\r\n\r\n\xff".encode()

TOKEN, HOOK_KEY, HOOK_SECRET, S3_KEY = "Page/Word+9=&%42", "Path/Word+1=&x", "Hook/Word+2=&%43#", "Pail/Word+3=&%44"

COMMANDS = [
    *("--help", "check", "check --json", "migrate", "status", "status --json", "verify", "verify --json"),
    *("messages list", "messages show 1", "dead list --json", "dead show 1", "reparse"),
]
CHANGING = ["dead retry 1", "dead discard 2"]


@pytest.fixture
def process(
    guarded_dovecot: Dovecot,
    guarded_url: str,
    bucket: S3Server,
    echoing_receiver: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> OpsMail:
    """Not started yet; every secret comes by a variable of its own."""
    for name, value in (bucket.environment() | {"AWS_SECRET_ACCESS_KEY": S3_KEY}).items():
        monkeypatch.setenv(name, value)
    settings = {
        "IMAP_HOST": "localhost",
        "IMAP_PORT": guarded_dovecot.tls_port,
        "IMAP_CA_FILE": guarded_dovecot.ca_file,
        "IMAP_USERNAME": "ops",
        "IMAP_PASSWORD": guarded_dovecot.password,
        "DATABASE_URL": guarded_url,
        "STORE_URL": "s3://bucket/mails",
        "HANDLER": "webhook",
        "WEBHOOK_URL": f"{echoing_receiver}?key={HOOK_KEY}",
        "WEBHOOK_SECRET": HOOK_SECRET,
        "HTTP_TOKEN": TOKEN,
        "LOG_DIR": tmp_path / "logs",
    }
    return OpsMail(tmp_path, settings)


def test_no_output_of_a_process_at_work_holds_a_secret(
    process: OpsMail, guarded_dovecot: Dovecot, guarded_url: str, tmp_path: Path
) -> None:
    secrets = [guarded_dovecot.password, TOKEN, HOOK_KEY, HOOK_SECRET, S3_KEY]
    secrets.append(str(sa.make_url(guarded_url).password))
    guarded_dovecot.append_many("ops", "INBOX", [MAIL, BROKEN])
    with process:
        dead = "SELECT COUNT(*) FROM ops_mail_message WHERE status = 'dead'"
        process.wait_until(lambda: Tables(guarded_url).exist() and Tables(guarded_url).value(dead) == 2, "dead mails")
        process.wait_state("idling")
        guarded_dovecot.append("ops", "INBOX", MAIL)
        process.wait_until(lambda: Tables(guarded_url).value(dead) == 3, "one more, by push")
        found = outputs.command_lines(process) | outputs.endpoints(process, TOKEN)
        found |= outputs.commands(process, COMMANDS) | outputs.commands(process, CHANGING)
        found |= outputs.stored_rows(guarded_url)
        assert process.terminate() == 0
    logged = outputs.logs(process, tmp_path / "logs")
    found |= logged | outputs.settings_shown(process.environment())
    assert leaks(found, secrets) == []
    assert "you asked for" in found["table ops_mail_attempt"], "what the receiver repeated was kept, but for the key"
    for content in (SUBJECT, BODY, SENDER):
        assert [name for name, text in logged.items() if content in text] == []
