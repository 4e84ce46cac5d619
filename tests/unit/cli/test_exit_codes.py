"""The exit codes that people are told are those that commands end with."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ops_mail.cli.exit_codes import MEANINGS, ExitCode
from ops_mail.cli.main import app

ROOT = Path(__file__).resolve().parents[3]


def test_the_readme_lists_every_code_and_no_other() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert [int(code) for code, _ in rows] == list(ExitCode)
    for code, says in rows:
        first = re.split(r"[;,]", MEANINGS[ExitCode(int(code))])[0]
        assert says.startswith(first), code


def test_the_help_ends_with_them() -> None:
    told = " ".join(CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output.split())
    assert list(MEANINGS) == list(ExitCode)
    for code, meaning in MEANINGS.items():
        assert f"{code.value} {meaning}" in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_a_signal_ends_has_the_code_of_the_list(number: signal.Signals, tmp_path: Path) -> None:
    expected = {
        signal.SIGINT: ExitCode.INTERRUPTED,
        signal.SIGTERM: ExitCode.TERMINATED,
        signal.SIGKILL: ExitCode.KILLED,
    }
    # `parse` shows the first mail and then waits for the end of the second, which is a pipe that nobody closes.
    (tmp_path / "mail.eml").write_bytes(b"Subject: first\r\n\r\nbody\r\n")
    command = [sys.executable, "-m", "ops_mail", "parse", "--json", str(tmp_path / "mail.eml"), "-"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"first" in process.stdout.readline()
        process.send_signal(number)
        code = process.wait()
    assert (128 - code if code < 0 else code) == expected[number]
