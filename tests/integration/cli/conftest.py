from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.commands import CommandLine, Done, environment_with, run_process
from tests.servers.dovecot import Dovecot
from tests.servers.fixtures import *  # noqa: F403 - pytest finds fixtures by their names

ROOT = Path(__file__).resolve().parents[3]

CompletedProcess = subprocess.CompletedProcess[str]
Cli = Callable[..., CompletedProcess]

_numbers = itertools.count(1)


@pytest.fixture
def user() -> str:
    """A mailbox of its own for each test."""
    return f"cli{next(_numbers)}"


@pytest.fixture
def cli(command_line: CommandLine, tmp_path: Path) -> Cli:
    """Runs `ops-mail …` in an empty folder with these settings (names without OPS_MAIL_) and no others."""
    return _runner(command_line.run, tmp_path)


@pytest.fixture
def cli_process(tmp_path: Path) -> Cli:
    """As `cli`, by `python -m ops_mail …`."""
    return _runner(run_process, tmp_path)


def _runner(start: Callable[[tuple[str, ...], dict[str, str], Path, bytes], Done], folder: Path) -> Cli:
    def run(*arguments: str, stdin: bytes = b"", **settings: object) -> CompletedProcess:
        settings.setdefault("HTTP_PORT", "0")  # 8080 may be another program's here
        named = {f"OPS_MAIL_{name}": value for name, value in settings.items()}
        done = start(arguments, environment_with(**named, COLUMNS=200), folder, stdin)
        out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return run


def mailbox_settings(dovecot: Dovecot, user: str) -> dict[str, object]:
    """The settings that reach a mailbox of `dovecot` over TLS."""
    return {
        "IMAP_HOST": "localhost",
        "IMAP_PORT": dovecot.tls_port,
        "IMAP_USERNAME": user,
        "IMAP_PASSWORD": dovecot.password,
        "IMAP_CA_FILE": dovecot.ca_file,
        "CONNECT_TIMEOUT_SECONDS": 10,
    }
