"""`status` beside living and dead instances."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integration.cli.conftest import Cli, CompletedProcess, mailbox_settings
from tests.servers.dovecot import Dovecot
from tests.servers.product import OpsMail

MAIL = b"From: a@example.org\r\nSubject: x\r\n\r\nbody\r\n"


def told(done: CompletedProcess) -> dict[str, Any]:
    assert done.stderr == ""
    body: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if body["ready"] else 1)
    return body


def until(look: Callable[[], dict[str, Any]], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first body that is as wanted."""
    deadline = time.monotonic() + 60
    while not wanted(body := look()):
        assert time.monotonic() < deadline, body
        time.sleep(0.1)
    return body


def settings_for(dovecot: Dovecot, user: str, folder: Path) -> dict[str, object]:
    return mailbox_settings(dovecot, user) | {
        "DATABASE_URL": f"sqlite+aiosqlite:///{folder}/ops-mail.db",
        "LEASE_SECONDS": 2,
        "IDLE_SECONDS": 5,
    }


def test_leader_standby_and_mails_are_shown_and_all_is_ready(
    cli: Cli, dovecot: Dovecot, user: str, tmp_path: Path
) -> None:
    settings = settings_for(dovecot, user, tmp_path)
    uid = dovecot.append(user, "INBOX", MAIL)
    with OpsMail(tmp_path / "one", settings, name="one") as leader:
        leader.wait_ready()
        with OpsMail(tmp_path / "two", settings, name="two") as standby:
            standby.wait_ready()
            body = until(
                lambda: told(cli("status", "--json", **settings)),
                lambda body: body["ready"] and len(body["instances"]) == 2,
            )
            table = cli("status", **settings)
            assert standby.terminate() == 0
        assert leader.terminate() == 0
    (mailbox,) = body["mailboxes"]
    assert (mailbox["name"], mailbox["folder"], mailbox["ready"], mailbox["reason"]) == (user, "INBOX", True, "")
    assert mailbox["state"] in ("syncing", "idling", "ending")
    assert mailbox["last_uid"] == uid
    assert mailbox["holder"].startswith("one:")
    assert mailbox["last_sync_age_seconds"] < 60
    duties = {instance["instance"].partition(":")[0]: instance for instance in body["instances"]}
    assert (duties["one"]["duty"], duties["two"]["duty"]) == ("leader", "standby")
    assert (duties["one"]["mailboxes"], duties["two"]["mailboxes"]) == ([f"{user}/INBOX"], [])
    assert body["messages"]["landed"] == 1

    assert (table.returncode, table.stderr) == (0, "")
    for text in (f"{user}/INBOX", "ready", "leader", "standby", "Mails: 1 landed"):
        assert text in table.stdout


def test_after_a_kill_nobody_holds_the_mailbox(cli: Cli, dovecot: Dovecot, user: str, tmp_path: Path) -> None:
    settings = settings_for(dovecot, user, tmp_path)
    with OpsMail(tmp_path / "one", settings, name="one") as leader:
        leader.wait_ready()
        until(lambda: told(cli("status", "--json", **settings)), lambda body: body["ready"] and body["instances"])
        leader.kill()
    body = until(
        lambda: told(cli("status", "--json", **settings)),
        lambda body: not body["ready"] and all(instance["duty"] == "gone" for instance in body["instances"]),
    )
    (mailbox,) = body["mailboxes"]
    assert (mailbox["reason"], mailbox["holder"]) == ("no living instance holds it", None)


def test_a_mailbox_in_backoff_is_not_ready_and_tells_its_error(
    cli: Cli, dovecot: Dovecot, user: str, tmp_path: Path
) -> None:
    settings = settings_for(dovecot, user, tmp_path) | {"IMAP_PASSWORD": "wrong", "BACKOFF_INITIAL_SECONDS": 60}
    with OpsMail(tmp_path / "one", settings, name="one") as process:
        process.wait_for_line("schema_ready")
        body = until(
            lambda: told(cli("status", "--json", **settings)),
            lambda body: body["mailboxes"][0].get("state") == "backoff",
        )
    (mailbox,) = body["mailboxes"]
    assert mailbox["ready"] is False
    assert mailbox["reason"].startswith("in backoff after 1 failure: ")
    assert "refused the login" in mailbox["reason"]
    assert mailbox["next_retry_at"] is not None


def test_without_a_database_there_is_nothing_to_show_and_none_is_made(cli: Cli, tmp_path: Path) -> None:
    done = cli("status", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    where = f"in {tmp_path}, where settings are read from .env"
    assert done.stderr == f"there is no database ops-mail.db yet {where}: run `ops-mail migrate` (or `ops-mail run`)\n"
    assert list(tmp_path.iterdir()) == []


def test_a_mailbox_that_never_ran_is_not_ready(cli: Cli, dovecot: Dovecot, user: str) -> None:
    assert cli("migrate").returncode == 0
    body = told(cli("status", "--json", **mailbox_settings(dovecot, user)))
    assert body["ready"] is False
    assert body["mailboxes"][0]["reason"] == "no instance has ever listened to it"
    table = cli("status", **mailbox_settings(dovecot, user))
    assert table.returncode == 1
    assert "not ready" in table.stdout
    assert "No instance is running." in table.stdout


def test_without_mailboxes_in_the_settings_an_empty_database_is_no_failure(cli: Cli) -> None:
    cli("migrate")
    done = cli("status")
    assert (done.returncode, done.stderr) == (0, "")
    assert "No mailbox has ever been listened to." in done.stdout
