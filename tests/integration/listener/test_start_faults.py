"""What is wrong at the start is one clear line, is visible, is tried again ever later, and crashes nothing."""

from __future__ import annotations

import itertools
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.listener.settings import imap_settings
from tests.servers.dovecot import Dovecot
from tests.servers.product import OpsMail

SECRET = "not-the-right-one"

Fault = tuple[dict[str, object], str, str, str]  # settings, reason, text of the line, hint


def faults(dovecot: Dovecot, free_port: int) -> Iterator[Fault]:
    yield {"IMAP_PASSWORD": SECRET}, "auth", r"login", "OPS_MAIL_IMAP_PASSWORD"
    yield {"IMAP_HOST": "no-such-host.invalid"}, "unreachable", r"no-such-host\.invalid", "OPS_MAIL_IMAP_HOST"
    yield {"IMAP_PORT": free_port}, "unreachable", r"no connection to 127", "OPS_MAIL_IMAP_PORT"
    yield {"IMAP_CA_FILE": ""}, "tls", r"certificate", "OPS_MAIL_IMAP_CA_FILE"
    yield {"IMAP_FOLDER": "No/Such/Folder"}, "folder", r"No/Such/Folder", "OPS_MAIL_IMAP_FOLDER"


@pytest.mark.parametrize("number", range(5), ids=["password", "host", "refused", "certificate", "folder"])
def test_an_imap_fault(
    number: int, dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], free_port: int, tmp_path: Path
) -> None:
    user = new_user()
    wrong, reason, text, hint = next(itertools.islice(faults(dovecot, free_port), number, None))
    settings = imap_settings(dovecot, user, mariadb_url, BACKOFF_INITIAL_SECONDS="0.2", BACKOFF_MAX_SECONDS="2") | wrong
    with OpsMail(tmp_path, settings) as process:
        sample = f'ops_mail_reconnects_total{{mailbox="{user}",reason="{reason}"}}'
        process.wait_until(lambda: process.metric(sample) >= 4, "retries")
        line = process.wait_for_line("session_failed", reason=reason)
        assert re.search(text, line["error"], re.IGNORECASE), line
        assert hint in line["error"]
        assert "\n" not in line["error"]
        code, ready = process.get_json("/readyz")
        assert (code, ready["ready"], ready["database"]) == (503, False, "ok")
        (mailbox,) = ready["mailboxes"]
        assert mailbox["state"] in ("backoff", "connecting", "selecting")
        assert hint in mailbox["reason"]
        assert process.get("/healthz")[0] == 200
        if reason == "auth":
            assert process.metric(f'ops_mail_auth_failures_total{{mailbox="{user}"}}') >= 4
        assert grows(process)
        assert process.terminate() == 0
        assert "Traceback" not in process.log_text()
        assert SECRET not in process.log_text()


def grows(process: OpsMail) -> bool:
    """The same failure is told at the 1st, 2nd, 4th … time, and failures count up."""
    told: list[dict[str, Any]] = [line for line in process.lines() if line["event"] == "session_failed"]
    times = [line["times"] for line in told]
    return times == [2**power for power in range(len(times))] and [line["failures"] for line in told] == times


def test_a_database_that_is_down_and_comes_up(
    dovecot: Dovecot, new_user: Callable[[], str], free_port: int, mariadb_url: str, tmp_path: Path
) -> None:
    user = new_user()
    url = f"mysql+aiomysql://ops:{SECRET}@127.0.0.1:{free_port}/ops"
    settings = imap_settings(dovecot, user, url, BACKOFF_INITIAL_SECONDS="0.2", BACKOFF_MAX_SECONDS="2")
    with OpsMail(tmp_path, settings) as process:
        line = process.wait_for_line("database_down", times=4)
        assert str(free_port) in line["error"] or "connect" in line["error"].lower()
        code, ready = process.get_json("/readyz")
        assert (code, ready["ready"], ready["database"]) == (503, False, "down")
        assert process.get("/healthz")[0] == 200
        assert process.metric("ops_mail_db_errors_total") >= 4
        assert process.terminate() == 0
        assert "Traceback" not in process.log_text()
        assert SECRET not in process.log_text()


def test_a_port_in_use_ends_the_start_with_one_line_and_exit_code_1(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = OpsMail(tmp_path, imap_settings(dovecot, new_user(), mariadb_url, HTTP_PORT=port)).launch()
        assert process.process.wait(30) == 1
        errors = [line for line in process.lines() if line["level"] == "error"]
        assert [line["event"] for line in errors] == ["cannot_start"]
        assert f"127.0.0.1:{port}" in errors[0]["error"]
        assert "OPS_MAIL_HTTP_PORT" in errors[0]["error"]
        assert "Traceback" not in process.log_text()


def test_wrong_settings_are_one_line_each_and_exit_code_78(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPS_MAIL_")}
    environment |= {
        "OPS_MAIL_IMAP_HOST": "imap.example.org",
        "OPS_MAIL_IMAP_PASSWORD": SECRET,
        "OPS_MAIL_IDLE_SECONDS": "soon",
        "OPS_MAIL_IDEL_SECONDS": "120",
        "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
    }
    answer = subprocess.run(
        [sys.executable, "-m", "ops_mail"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 78
    lines = answer.stderr.splitlines()
    for name in ("OPS_MAIL_IMAP_USERNAME", "OPS_MAIL_IDLE_SECONDS", "OPS_MAIL_IDEL_SECONDS"):
        assert sum(name in line for line in lines) >= 1, lines
    assert SECRET not in answer.stderr
    assert "Traceback" not in answer.stderr
