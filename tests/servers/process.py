"""What the database launchers have in common: ports, processes that leave nothing behind."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import pymysql

START_SECONDS = 60.0


_PORTS = range(12_000, 32_000)  # below those that Linux gives to whoever asks for any port, outgoing connections too
_random = random.SystemRandom()


def free_port() -> int:
    """A port on 127.0.0.1 that nobody has, and that nobody gets before the server that it is for is up."""
    while True:
        port = _random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class SqlServer:
    """A MySQL-protocol server in a temporary folder. Subclasses say how to prepare it and which command serves."""

    scheme = "mysql+aiomysql"

    def __init__(self) -> None:
        self.port = 0
        self._folder: Path | None = None  # only start() gives it a value, so stop() can remove nothing else
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0

    def prepare(self) -> None:
        """Makes the data directory in `self.folder`."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """The command line that serves on `self.port`."""
        raise NotImplementedError

    def clean(self) -> None:
        """Undoes what `prepare` did outside of the folder."""

    @property
    def folder(self) -> Path:
        """The server's own folder, from `start` to `stop`."""
        if self._folder is None:
            raise RuntimeError("the server was not started")
        return self._folder

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Serves an empty server; returns when it answers."""
        self._folder = Path(tempfile.mkdtemp(prefix="ops-mail-db-"))
        self._folder.chmod(0o755)
        self.port = free_port()
        try:
            self.prepare()
            self._run()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends the server and removes every trace of it; nothing at all if it was never started."""
        self.kill()
        folder, self._folder = self._folder, None
        if folder is not None:
            self.clean()
            shutil.rmtree(folder, ignore_errors=True)

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Kills it if it runs and serves the same data on the same port again."""
        self.kill()
        self._run()

    def freeze(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Undoes `freeze`."""
        os.kill(self.pid, signal.SIGCONT)

    def execute(
        self, sql: str, database: str | None = None, answer_seconds: float | None = None
    ) -> tuple[tuple[object, ...], ...]:
        """Runs one statement as the administrator and returns its rows."""
        connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", password="", database=database, autocommit=True,
            read_timeout=answer_seconds,
        )  # fmt: skip
        with connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return tuple(cursor.fetchall())

    def create_database(self, grants: str = "ALL") -> str:
        """A fresh database with an account of its own; returns its URL. `grants` hold for the whole database."""
        if self._process is not None and self._process.poll() is not None:
            self._run()  # it crashed by itself, as MariaDB 10.11 was seen to: that fails one test, not all that follow
        self._databases += 1
        name = f"test_{os.getpid()}_{self._databases}"
        self.execute(f"CREATE DATABASE {name}")
        self.execute(f"CREATE USER '{name}'@'127.0.0.1' IDENTIFIED BY 'secret-{name}'")
        if grants:
            self.execute(f"GRANT {grants} ON {name}.* TO '{name}'@'127.0.0.1'")
        return f"{self.scheme}://{name}:secret-{name}@127.0.0.1:{self.port}/{name}"

    def _run(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment()
            )
        limit = time.monotonic() + START_SECONDS
        while True:
            try:
                self.execute("SELECT 1", answer_seconds=5)
                return
            except pymysql.MySQLError:
                if self._process.poll() is not None or time.monotonic() > limit:
                    text = (self.folder / "server.log").read_text(errors="replace")[-3000:]
                    raise RuntimeError(f"the server does not start:\n{text}") from None
                time.sleep(0.02)

    def environment(self) -> Mapping[str, str]:
        """The server's environment."""
        return os.environ


def cache_folder() -> Path:
    """Where prepared data directories and the MySQL root live between runs."""
    chosen = os.environ.get("OPS_MAIL_TEST_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "ops-mail-tests"
