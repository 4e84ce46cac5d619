from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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
def cli(tmp_path: Path) -> Cli:
    """Runs `python -m ops_mail …` in an empty folder with these settings (names without OPS_MAIL_) and no others."""

    def run(*arguments: str, stdin: bytes = b"", **settings: object) -> CompletedProcess:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OPS_MAIL_")}
        environment |= {f"OPS_MAIL_{name}": str(value) for name, value in settings.items()}
        environment.setdefault("OPS_MAIL_HTTP_PORT", "0")  # 8080 may be another program's here
        environment |= {"PYTHONPATH": str(ROOT), "COLUMNS": "200"}
        done = subprocess.run(
            [sys.executable, "-m", "ops_mail", *arguments],
            cwd=tmp_path,
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=100,
            check=False,
        )
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
