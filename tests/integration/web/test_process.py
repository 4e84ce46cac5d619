"""The page of the product itself, between a real Dovecot and a real MariaDB."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.servers.dovecot import Dovecot
from tests.servers.product import OpsMail

MAIL = b"From: Ann <ann@example.org>\r\nTo: ops@example.org\r\nSubject: Secret merger\r\n\r\nbody\r\n"
PATHS = ("/", "/?lang=zh", "/api/status", "/api/openapi.json", "/metrics", "/healthz", "/readyz", "/static/live.js")


@pytest.fixture
def settings(dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str]) -> dict[str, object]:
    return {
        "IMAP_HOST": "127.0.0.1",
        "IMAP_PORT": dovecot.tls_port,
        "IMAP_CA_FILE": dovecot.ca_file,
        "IMAP_USERNAME": new_user(),
        "IMAP_PASSWORD": dovecot.password,
        "DATABASE_URL": mariadb_url,
    }


def status(process: OpsMail) -> dict[str, Any]:
    code, body = process.get_json("/api/status")
    assert code == 200
    return body


def looked(process: OpsMail, instances: int = 1) -> dict[str, Any]:
    """The status, once the database is part of it and that many instances have written their row."""

    def look() -> dict[str, Any] | None:
        body = status(process)
        return body if body["overview"] and len(body["overview"]["instances"]) >= instances else None

    body: dict[str, Any] = process.wait_until(look, f"an overview with {instances} instances")
    return body


def first_event(process: OpsMail) -> tuple[socket.socket, str]:
    """An open live feed, and the beginning of what it says."""
    reader = socket.create_connection(("127.0.0.1", process.port), 10)
    reader.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    text = b""
    while b"event: update" not in text or not text.endswith(b"\n\n\r\n"):
        text += reader.recv(65_536)
    return reader, text.decode()


def test_a_mail_shows_where_it_should_and_its_content_nowhere(
    dovecot: Dovecot, settings: dict[str, object], tmp_path: Path
) -> None:
    user = str(settings["IMAP_USERNAME"])
    with OpsMail(tmp_path, settings) as process:
        process.wait_state("idling")
        dovecot.append(user, "INBOX", MAIL)
        process.wait_until(lambda: looked(process)["overview"]["messages"]["landed"]["count"] == 1, "the mail")
        body = status(process)
        (mailbox,) = body["mailboxes"]
        assert (mailbox["name"], mailbox["level"], mailbox["held_here"], mailbox["last_uid"]) == (user, "ok", True, 1)
        assert mailbox["last_push_at"] is not None
        assert mailbox["last_landed_at"] is not None
        assert mailbox["next_wait_over_at"] > body["now"]
        assert sum(hour["count"] for hour in body["overview"]["arrivals"]) == 1
        (instance,) = body["overview"]["instances"]
        assert (instance["here"], instance["duty"], instance["mailboxes"]) == (True, "leader", [f"{user}/INBOX"])
        assert instance["instance"] == body["instance_id"] == mailbox["holder"]
        reader, event = first_event(process)
        reader.close()
        for text in (event, *(process.get(path)[1] for path in PATHS)):
            assert "merger" not in text
            assert "ann@example.org" not in text


def test_a_standby_shows_what_the_leader_does(settings: dict[str, object], tmp_path: Path) -> None:
    with OpsMail(tmp_path, settings, name="first") as first:
        first.wait_state("idling")
        with OpsMail(tmp_path, settings, name="second") as second:
            second.wait_ready()
            second.wait_until(lambda: status(second)["mailboxes"][0]["leader"], "the leader's report")
            (mailbox,) = status(second)["mailboxes"]
            assert (mailbox["state"], mailbox["level"], mailbox["held_here"]) == ("standby", "standby", False)
            assert mailbox["leader"]["state"] in ("idling", "syncing", "ending", "selecting", "connecting")
            assert mailbox["epoch"] == 1
            duties = {one["here"]: one["duty"] for one in looked(second, instances=2)["overview"]["instances"]}
            assert duties == {True: "standby", False: "leader"}
            assert "Another instance listens" in second.get("/")[1]


def test_a_wrong_password_is_told_in_words_with_what_to_do(settings: dict[str, object], tmp_path: Path) -> None:
    with OpsMail(tmp_path, settings | {"IMAP_PASSWORD": "never-this-one"}) as process:
        process.wait_until(lambda: status(process)["mailboxes"][0]["trouble"], "the failure")
        (mailbox,) = status(process)["mailboxes"]
        assert (mailbox["trouble"], mailbox["level"], mailbox["ready"]) == ("auth", "bad", False)
        assert "OPS_MAIL_IMAP_PASSWORD" in mailbox["advice"]
        page = process.get("/")[1]
        assert "1 mailbox is not ready" in page
        assert "What to do" in page


def test_a_database_that_refuses_the_account_is_told_without_its_password(
    settings: dict[str, object], tmp_path: Path
) -> None:
    url = sa.make_url(str(settings["DATABASE_URL"])).set(password="never-this-one")
    changed = settings | {"DATABASE_URL": url.render_as_string(hide_password=False)}
    with OpsMail(tmp_path, changed) as process:
        process.wait_until(lambda: "Access denied" in (status(process)["database_error"] or ""), "the refusal")
        page = process.get("/")[1]
        assert "The database does not answer" in page
        assert "OPS_<wbr>MAIL_<wbr>DATABASE_<wbr>URL" in page
        assert "never-this-one" not in page + process.log_text()


def test_open_pages_do_not_hold_the_process(settings: dict[str, object], tmp_path: Path) -> None:
    with OpsMail(tmp_path, settings) as process:
        process.wait_state("idling")
        readers = [first_event(process)[0] for _ in range(10)]
        started = time.monotonic()
        assert process.terminate() == 0
        assert time.monotonic() - started < 8, "within the grace period"
        for reader in readers:
            reader.close()
        assert "http_close_failed" not in process.log_text()
        assert "grace period is over" not in process.log_text()
