"""`check` on a real IMAP server: each row, what to do, and that nothing changes."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.conftest import Cli, CompletedProcess, mailbox_settings
from tests.servers.dovecot import Dovecot

MAIL = b"From: a@example.org\r\nSubject: x\r\n\r\nbody\r\n"
STEPS = ["dns", "tcp", "tls", "login", "capabilities", "provider", "folder", "idle"]


def rows(done: CompletedProcess, group: str) -> list[dict[str, str]]:
    assert done.stderr == ""
    return [row for row in json.loads(done.stdout)["checks"] if row["group"] == group]


def verdicts(found: list[dict[str, str]]) -> dict[str, str]:
    return {row["step"]: row["verdict"] for row in found}


def failed_at(step: str) -> dict[str, str]:
    """Ok before, skipped after."""
    index = STEPS.index(step)
    return {name: "ok" if at < index else "fail" if at == index else "skipped" for at, name in enumerate(STEPS)}


def test_all_is_well_on_a_real_server_after_migrate(cli: Cli, dovecot: Dovecot, user: str) -> None:
    settings = mailbox_settings(dovecot, user)
    dovecot.append(user, "INBOX", MAIL)
    assert cli("migrate").returncode == 0

    done = cli("check", "--json", **settings)

    assert done.returncode == 0
    assert json.loads(done.stdout)["ok"] is True
    found = rows(done, f"{user}/INBOX")
    assert [row["step"] for row in found] == STEPS
    assert set(verdicts(found).values()) <= {"ok", "warn"}
    told = {row["step"]: row["detail"] for row in found}
    assert told["tcp"].endswith(" ms")
    assert told["tls"].startswith("tls, the certificate is good for ")
    assert told["login"].startswith(f"as {user}, ")
    assert "IDLE" in told["capabilities"]
    assert told["folder"].startswith("1 mail, UIDVALIDITY ")
    assert told["idle"].startswith("begun and ended, ")
    database = rows(done, "database")
    assert [(row["step"], row["verdict"]) for row in database] == [
        ("reachable", "ok"),
        ("clock", "ok"),
        ("schema", "ok"),
        ("privileges", "ok"),
        ("guard", "ok"),
    ]
    assert database[0]["detail"].startswith("sqlite+aiosqlite:///ops-mail.db: SQLite 3.")
    assert database[4]["detail"] == f"{user}/INBOX is free"


def test_a_table_is_for_people(cli_process: Cli, dovecot: Dovecot, user: str) -> None:
    done = cli_process("check", **mailbox_settings(dovecot, user) | {"IMAP_PASSWORD": "wrong"})
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    login = next(index for index, line in enumerate(lines) if " login " in line)
    assert " fail " in lines[login]
    assert "OPS_MAIL_IMAP_PASSWORD" in "".join(lines[login : login + 3])
    assert lines[-1] == "1 of 16 steps failed"
    assert "wrong" not in done.stdout


def test_nothing_changes(cli: Cli, dovecot: Dovecot, user: str, tmp_path: Path) -> None:
    settings = mailbox_settings(dovecot, user)
    uid = dovecot.append(user, "INBOX", MAIL)
    first = cli("check", "--json", **settings)
    assert verdicts(rows(first, "database"))["reachable"] == "warn"
    assert list(tmp_path.iterdir()) == []  # no database was made
    cli("migrate")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert cli("check", **settings).returncode == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    # \Recent would be gone had the folder been selected, \Seen set had the mail been read.
    assert dovecot.contents(user, "INBOX")[uid] == (MAIL, ("\\Recent",))


@pytest.mark.parametrize(
    ("changes", "step", "detail", "advice"),
    [
        ({"IMAP_HOST": "no.such.host.invalid"}, "dns", "no.such.host.invalid: ", "OPS_MAIL_IMAP_HOST"),
        ({"IMAP_PORT": 1}, "tcp", "Connection refused", "OPS_MAIL_IMAP_PORT"),
        ({"IMAP_CA_FILE": ""}, "tls", "authority unknown here", ""),
        ({"IMAP_PASSWORD": "wrong"}, "login", "refused the login", "OPS_MAIL_IMAP_PASSWORD"),
        ({"IMAP_FOLDER": "Nicht da"}, "folder", "refused to open the folder 'Nicht da'", "OPS_MAIL_IMAP_FOLDER"),
    ],
)
def test_the_step_that_fails_says_what_to_do_and_the_rest_is_skipped(
    cli: Cli, dovecot: Dovecot, user: str, changes: dict[str, object], step: str, detail: str, advice: str
) -> None:
    dovecot.create_folder(user, "Rechnungen")
    done = cli("check", "--json", **mailbox_settings(dovecot, user) | changes)
    assert done.returncode == 1
    found = rows(done, f"{user}/{changes.get('IMAP_FOLDER', 'INBOX')}")
    expected = failed_at(step)
    if STEPS.index(step) > STEPS.index("tls"):
        expected["tls"] = verdicts(found)["tls"]  # the test's certificate may be near its end
        assert expected["tls"] in ("ok", "warn")
    assert verdicts(found) == expected
    row = found[STEPS.index(step)]
    assert detail in row["detail"]
    assert advice in row["advice"]
    if step == "folder":
        assert "Rechnungen" in row["detail"] + row["advice"]


def test_tls_where_there_is_none_is_told(cli: Cli, dovecot: Dovecot, user: str) -> None:
    done = cli("check", "--json", **mailbox_settings(dovecot, user) | {"IMAP_PORT": dovecot.port})
    assert done.returncode == 1
    found = rows(done, f"{user}/INBOX")
    assert verdicts(found) == failed_at("tls")
    assert "does not speak TLS" in found[2]["detail"]


@pytest.mark.parametrize(("security", "verdict"), [("starttls", {"ok", "warn"}), ("plain", {"skipped"})])
def test_the_other_ways_to_connect(cli: Cli, dovecot: Dovecot, user: str, security: str, verdict: set[str]) -> None:
    settings = mailbox_settings(dovecot, user) | {"IMAP_PORT": dovecot.port, "IMAP_SECURITY": security}
    done = cli("check", "--json", **settings)
    assert done.returncode == 0
    found = verdicts(rows(done, f"{user}/INBOX"))
    assert found.pop("tls") in verdict
    assert set(found.values()) == {"ok"}


@contextmanager
def silent_server() -> Iterator[int]:
    """Accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    accepted.append(server.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in accepted:
                connection.close()


@pytest.mark.parametrize(("security", "step"), [("tls", "tls"), ("plain", "login")])
def test_a_server_that_never_answers_takes_no_longer_than_the_limits(cli: Cli, security: str, step: str) -> None:
    with silent_server() as port:
        settings: dict[str, Any] = {
            "IMAP_HOST": "127.0.0.1",
            "IMAP_PORT": port,
            "IMAP_SECURITY": security,
            "IMAP_USERNAME": "u",
            "IMAP_PASSWORD": "hunter2",
            "CONNECT_TIMEOUT_SECONDS": 0.5,
        }
        done = cli("check", "--json", **settings)
    assert done.returncode == 1
    assert verdicts(rows(done, "u/INBOX")).pop(step) == "fail"


def test_several_mailboxes_are_all_tried(cli: Cli, dovecot: Dovecot, user: str, tmp_path: Path) -> None:
    entry = (
        '[[mailbox]]\nname = "{name}"\nhost = "localhost"\nport = {port}\nusername = "{user}"\n'
        'password = "{password}"\nca_file = "{ca_file}"\n'
    )
    text = "".join(
        entry.format(name=name, port=dovecot.tls_port, user=user, password=password, ca_file=dovecot.ca_file)
        for name, password in (("good", dovecot.password), ("bad", "wrong"), ("fine", dovecot.password))
    )
    (tmp_path / "mailboxes.toml").write_text(text)
    done = cli("check", "--json", MAILBOXES_FILE="mailboxes.toml")
    assert done.returncode == 1
    groups = list(dict.fromkeys(row["group"] for row in json.loads(done.stdout)["checks"]))
    assert groups == ["settings", "http", "contents", "database", "good/INBOX", "bad/INBOX", "fine/INBOX"]
    assert verdicts(rows(done, "good/INBOX"))["idle"] == verdicts(rows(done, "fine/INBOX"))["idle"] == "ok"
    assert verdicts(rows(done, "bad/INBOX"))["login"] == "fail"
    advice = rows(done, "bad/INBOX")[STEPS.index("login")]["advice"]
    assert advice.startswith('check username and password of mailbox "bad" in mailboxes.toml')
    assert "OPS_MAIL_" not in advice


def test_a_consumer_opens_no_mailbox(cli: Cli, dovecot: Dovecot, user: str) -> None:
    settings = mailbox_settings(dovecot, user) | {"ROLE": "consumer", "HANDLER": "json:loads"}
    done = cli("check", "--json", **settings)
    assert done.returncode == 0
    assert {row["group"] for row in json.loads(done.stdout)["checks"]} == {
        "settings",
        "http",
        "contents",
        "database",
    }


def test_what_is_allowed_but_hardly_meant_is_warned_of(cli: Cli) -> None:
    settings = {"IMAP_HOST": "imap.invalid", "IMAP_USERNAME": "u", "IMAP_PASSWORD": "p", "IMAP_SECURITY": "plain"}
    done = cli("check", "--json", LEASE_SECONDS=1, CONNECT_TIMEOUT_SECONDS=2, **settings)
    found = {row["step"]: row for row in rows(done, "settings")}
    assert found["security"]["verdict"] == found["lease"]["verdict"] == "warn"
    assert "OPS_MAIL_IMAP_SECURITY" in found["security"]["advice"]
    assert "OPS_MAIL_LEASE_SECONDS" in found["lease"]["advice"]
