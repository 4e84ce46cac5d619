"""`status --watch` as it is used: on a terminal, into a pipe, as JSON; with a database that comes and goes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.integration.cli.conftest import ROOT, Cli

INTERVAL = ("--interval", "0.1")


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPS_MAIL_")}
    return kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "160", "LINES": "40", "TERM": "xterm"}


@contextmanager
def watching(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """`status --watch`, its standard output a pipe; killed at the end if it still runs."""
    command = [sys.executable, "-m", "ops_mail", "status", "--watch", *INTERVAL, *options]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def interrupt(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Ctrl-C; the exit code and standard error."""
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    return process.returncode, err


def until(process: subprocess.Popen[bytes], *, ready: bool) -> dict[str, Any]:
    """The next line of JSON that is as wanted; a hang is ended by the test's own time limit."""
    assert process.stdout is not None
    for line in process.stdout:
        body: dict[str, Any] = json.loads(line)
        if body["ready"] is ready:
            return body
    raise AssertionError("the watch has ended by itself")


def test_each_line_is_an_object_and_a_database_that_was_away_comes_back(cli: Cli, tmp_path: Path) -> None:
    with watching(tmp_path, "--json") as process:
        body = until(process, ready=False)
        assert body["error"].startswith("there is no database ops-mail.db yet")
        assert cli("migrate").returncode == 0
        body = until(process, ready=True)
        assert (body["error"], body["mailboxes"], body["messages"]["landed"]) == (None, [], 0)
        (tmp_path / "ops-mail.db").rename(tmp_path / "away.db")
        assert until(process, ready=False)["error"] is not None
        (tmp_path / "away.db").rename(tmp_path / "ops-mail.db")
        until(process, ready=True)
        assert interrupt(process) == (0, b"")


def test_into_a_pipe_go_plain_pictures_one_after_the_other(cli: Cli, tmp_path: Path) -> None:
    assert cli("migrate").returncode == 0
    with watching(tmp_path) as process:
        assert process.stdout is not None
        text = b""
        while text.count(b"Mails: none") < 2:
            text += process.stdout.readline()
        (tmp_path / "ops-mail.db").rename(tmp_path / "away.db")
        while b"This is how it was at " not in text:
            text += process.stdout.readline()
        assert interrupt(process) == (0, b"")
    assert b"The database cannot be read: there is no database ops-mail.db yet" in text
    assert b"It is tried again every 0.1 s." in text
    assert b"\x1b" not in text


def test_on_a_terminal_one_picture_renews_itself_until_ctrl_c(cli: Cli, tmp_path: Path) -> None:
    assert cli("migrate").returncode == 0
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ops_mail", "status", "--watch", *INTERVAL]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs) as it:
        os.close(theirs)
        text = b""
        while text.count(b"Mails: none") < 3:
            text += os.read(ours, 65536)
        it.send_signal(signal.SIGINT)
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:
            pass  # Linux's way to say that nobody has the terminal any more
        os.close(ours)
        assert it.wait(30) == 0
    assert b"Traceback" not in text
    assert b"\x1b[1A" in text  # it goes up to draw over the picture before
