"""The process behind `CommandLine`: loads all commands, then forks one child for each request."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import socket
import sys
import tempfile

import ops_mail.__main__
import ops_mail.cli

# What the commands load only when they come to it.
LATE = (
    "aiosqlite", "ops_mail.app.process", "ops_mail.store.migrations.apply", "rich.console", "rich.table",
    "sqlalchemy.dialects.mysql.aiomysql", "sqlalchemy.dialects.sqlite.aiosqlite", "typer.rich_utils",
)  # fmt: skip
_REQUEST_BYTES = 200_000


def load_everything() -> None:
    """All of `ops_mail.cli`, and what it loads late."""
    found = pkgutil.walk_packages(ops_mail.cli.__path__, "ops_mail.cli.")
    for name in (*[module.name for module in found], *LATE):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def serve(control: socket.socket) -> bool:
    """Answers requests until nobody can ask any more; True: this is a child, ready to be the command."""
    running: dict[int, tuple[int, socket.socket]] = {}  # by pidfd
    poll = select.poll()
    poll.register(control, select.POLLIN)
    control.send(b"ready")
    while True:
        for fd, _ in poll.poll():
            if fd != control.fileno():
                poll.unregister(fd)
                pid, answer = running.pop(fd)
                os.close(fd)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with answer:
                    tell(answer, code)
                continue
            request, fds, _flags, _address = socket.recv_fds(control, _REQUEST_BYTES, 4)
            if not request:
                return False
            answer = socket.socket(fileno=fds.pop())
            pid = os.fork()
            if pid == 0:
                control.close()
                answer.close()
                for pidfd, (_, other) in running.items():
                    os.close(pidfd)
                    other.close()
                become(json.loads(request), fds)
                return True
            tell(answer, pid)
            for stream in fds:
                os.close(stream)
            pidfd = os.pidfd_open(pid)
            running[pidfd] = (pid, answer)
            poll.register(pidfd, select.POLLIN)


def tell(answer: socket.socket, number: int) -> None:
    """To one who may have given up waiting."""
    try:
        answer.send(str(number).encode())
    except BrokenPipeError:
        pass


def become(request: dict[str, object], fds: list[int]) -> None:
    """Takes what a new process would have: streams, folder, variables and arguments of its own."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115 - open to the end
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - open to the end
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 - open to the end
    env, cwd, arguments = request["env"], request["cwd"], request["arguments"]
    assert isinstance(env, dict)
    assert isinstance(cwd, str)
    assert isinstance(arguments, list)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    tempfile.tempdir = None  # asked for again, by these variables
    sys.path.insert(0, cwd)  # as -m does
    program = sys.modules["__main__"] = ops_mail.__main__  # so that usage names it as -m does
    sys.argv = [str(program.__file__), *(arguments or ["run"])]


if __name__ == "__main__":
    load_everything()
    with socket.socket(fileno=int(sys.argv[1])) as mine:
        is_command = serve(mine)
    if is_command:
        ops_mail.__main__.main()
