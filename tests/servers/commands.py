"""`ops-mail …` as tests run it, for its output: by forking a process that has loaded the program once.

Loading takes most of a command's time, and says nothing new the hundredth time. What a test learns from signals, a
terminal or a kill needs `run_process`, or a process of its own.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 100.0
_START_SECONDS = 60.0

Done = subprocess.CompletedProcess[bytes]


def environment_with(**variables: object) -> dict[str, str]:
    """This process's variables without any setting, with these (the full names)."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OPS_MAIL_")}
    return inherited | {name: str(value) for name, value in variables.items()} | {"PYTHONPATH": str(ROOT)}


def run_process(arguments: tuple[str, ...], env: Mapping[str, str], cwd: Path, stdin: bytes = b"") -> Done:
    """`python -m ops_mail ARGUMENTS`, truly."""
    command = [sys.executable, "-m", "ops_mail", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=SECONDS, check=False)


class CommandLine:
    """A process that has loaded all commands, and forks for each `run`. Any thread may call `run`."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.servers.commands_child", str(theirs.fileno())]
            fds = (theirs.fileno(),)
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment_with(), pass_fds=fds)
        self._control.settimeout(_START_SECONDS)
        assert self._control.recv(100) == b"ready", "the process that forks for commands does not start"

    def run(self, arguments: tuple[str, ...], env: Mapping[str, str], cwd: Path, stdin: bytes = b"") -> Done:
        """As `run_process`, but that its streams are files. Raises TimeoutExpired after 100 s."""
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with mine, tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            with theirs:
                request = json.dumps({"arguments": arguments, "env": dict(env), "cwd": str(cwd)}).encode()
                fds = [given.fileno(), out.fileno(), err.fileno(), theirs.fileno()]
                socket.send_fds(self._control, [request], fds)
            mine.settimeout(SECONDS)
            pid = int(mine.recv(100))
            try:
                code = int(mine.recv(100))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(arguments, SECONDS) from None
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(["ops-mail", *arguments], code, out.read(), err.read())

    def close(self) -> None:
        """It ends as soon as nobody can ask it any more."""
        self._control.close()
        self._process.wait(SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
