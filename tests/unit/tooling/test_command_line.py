"""The fork of a process that has loaded everything is, to a test, a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.servers.commands import CommandLine, Done, environment_with, run_process

SAME = [
    (("--version",), b""),
    (("fly", "--now"), b""),
    (("parse", "-"), "Subject: Grüße ✓\r\n\r\nHallo\r\n".encode()),
    ((), b""),
]


@pytest.mark.parametrize(("arguments", "stdin"), SAME, ids=["version", "usage", "input", "settings"])
def test_it_answers_as_a_process_does(
    command_line: CommandLine, tmp_path: Path, arguments: tuple[str, ...], stdin: bytes
) -> None:
    def answer(run: Callable[[tuple[str, ...], dict[str, str], Path, bytes], Done]) -> tuple[int, bytes, bytes]:
        done = run(arguments, environment_with(OPS_MAIL_ROLE="boss", COLUMNS=90), tmp_path, stdin)
        return done.returncode, done.stdout, done.stderr

    code, out, err = answer(command_line.run)
    assert out + err
    assert (code, out, err) == answer(run_process)


def test_each_has_a_folder_and_variables_of_its_own_and_several_run_at_once(
    command_line: CommandLine, tmp_path: Path
) -> None:
    names = [f"database{number}" for number in range(4)]

    def migrate(name: str) -> Done:
        url = f"sqlite+aiosqlite:///{name}.db"
        return command_line.run(("migrate",), environment_with(OPS_MAIL_DATABASE_URL=url), tmp_path)

    with ThreadPoolExecutor() as threads:
        done = list(threads.map(migrate, names))
    assert [(one.returncode, one.stderr) for one in done] == [(0, b"")] * 4
    assert {path.stem for path in tmp_path.glob("*.db")} == set(names)
