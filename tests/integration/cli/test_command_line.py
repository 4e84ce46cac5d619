"""Options, usage and exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ops_mail import __version__
from tests.integration.cli.conftest import ROOT, Cli

MISSING = [
    "OPS_MAIL_IMAP_HOST: is required",
    "OPS_MAIL_IMAP_USERNAME: is required",
    "OPS_MAIL_IMAP_PASSWORD: is required (or OPS_MAIL_IMAP_PASSWORD_FILE, the path of a file that holds it)",
]


def test_version(cli: Cli) -> None:
    done = cli("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ops-mail {__version__}\n", "")


def test_help_names_every_command(cli: Cli) -> None:
    done = cli("--help")
    assert done.returncode == 0
    for command in ("run", "check", "migrate", "status", "parse", "demo"):
        assert f" {command} " in done.stdout


@pytest.mark.parametrize("arguments", [("fly",), ("check", "--loud"), ("parse",), ("status", "--json", "extra")])
def test_wrong_usage_is_exit_code_2(cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli(*arguments)
    assert done.returncode == 2
    assert "Usage" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [(), ("run",), ("check",), ("check", "--json")])
def test_missing_settings_are_one_line_each_and_exit_code_78(cli: Cli, command: tuple[str, ...]) -> None:
    done = cli(*command)
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.splitlines() == MISSING


@pytest.mark.parametrize("command", ["migrate", "status"])
def test_commands_on_the_database_need_no_mailbox_but_tell_other_mistakes(cli: Cli, command: str) -> None:
    done = cli(command, DATABASE_URL="mysql://u:hunter2@h/db", IDEL_SECONDS="1")
    assert (done.returncode, done.stdout) == (78, "")
    unknown, driver = done.stderr.splitlines()
    assert unknown == "OPS_MAIL_IDEL_SECONDS: unknown setting; did you mean OPS_MAIL_IDLE_SECONDS?"
    assert driver.startswith("OPS_MAIL_DATABASE_URL: uses mysql, which is not an asynchronous driver; write mysql+aio")


def test_settings_come_from_the_env_file_too(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPS_MAIL_ROLE=boss\n")
    done = cli("migrate")
    assert done.returncode == 78
    assert done.stderr.splitlines() == ["OPS_MAIL_ROLE: must be one of all, leader, consumer, not 'boss'"]


def test_a_log_folder_that_cannot_be_written_is_a_configuration_mistake(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = cli("run", ENABLED="false", LOG_DIR=tmp_path / "file" / "logs", HTTP_PORT=0)
    assert done.returncode == 78
    assert done.stderr.splitlines() == [f"OPS_MAIL_LOG_DIR: cannot write {tmp_path}/file/logs: Not a directory"]


def test_a_command_that_fails_says_so_in_one_line(cli: Cli) -> None:
    done = cli("migrate", DATABASE_URL="mysql+aiomysql://u:hunter2@127.0.0.1:1/db")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "hunter2" not in done.stderr
    assert "Can't connect to MySQL server" in done.stderr


def test_migrate_tells_what_it_applied(cli: Cli, tmp_path: Path) -> None:
    first = cli("migrate")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("Applied 0001")
    assert (tmp_path / "ops-mail.db").exists()
    again = cli("migrate")
    assert (again.returncode, again.stdout) == (0, "The tables are up to date.\n")


@pytest.mark.parametrize("command", [("status",), ("messages", "list"), ("dead", "list", "--json")])
def test_a_process_of_its_own_answers_the_same(cli: Cli, cli_process: Cli, command: tuple[str, ...]) -> None:
    assert cli("migrate").returncode == 0
    here, there = cli(*command), cli_process(*command)
    assert here.returncode == 0
    assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, here.stderr)


_LATE = ("aiohttp", "sqlalchemy", "aioimaplib", "alembic", "structlog", "asyncio")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["parse", "--json", "mail.eml"]])
def test_what_needs_no_settings_starts_without_the_large_libraries(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "mail.eml").write_bytes(b"Subject: x\r\n\r\nbody\r\n")
    program = (
        "import sys\n"
        "from ops_mail.cli import main\n"
        f"sys.argv = ['ops-mail', *{arguments!r}]\n"
        "try:\n    main()\n"
        f"finally:\n    print([name for name in {_LATE!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "[]\n"
