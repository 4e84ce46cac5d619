"""MariaDB from the machine's own package, in a temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.servers.process import SqlServer, cache_folder


class MariaDb(SqlServer):
    """`mariadbd`: starts in less than a second. Commits are durable; buffers are small."""

    def prepare(self) -> None:
        """Copies a data directory that was made once for this version."""
        shutil.copytree(self._template(), self.folder / "data")
        (self.folder / "tmp").mkdir()

    def command(self) -> list[str]:
        """Loopback only; a socket path of its own, since the default one may be in use."""
        return [
            _program("mariadbd"),
            "--no-defaults",
            *_user(),
            f"--datadir={self.folder / 'data'}",
            # A server that starts deletes what earlier ones left in its tmpdir: in a shared one, the temporary tables
            # of those that run.
            f"--tmpdir={self.folder / 'tmp'}",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=64M",
            "--innodb-log-file-size=48M",
            "--innodb-flush-log-at-trx-commit=1",
            "--performance-schema=OFF",
            "--max-connections=200",
        ]

    def _template(self) -> Path:
        version = subprocess.run([_program("mariadbd"), "--version"], capture_output=True, check=True).stdout.decode()
        template = cache_folder() / f"mariadb-{version.split('Ver ')[1].split()[0]}"
        if not template.exists():
            building = template.with_name(f"{template.name}.{os.getpid()}")
            shutil.rmtree(building, ignore_errors=True)
            building.parent.mkdir(parents=True, exist_ok=True)
            options = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]
            subprocess.run(
                ["mariadb-install-db", *options, *_user(), f"--datadir={building}", "--innodb-log-file-size=48M"],
                check=True,
                capture_output=True,
            )
            try:
                building.rename(template)
            except OSError:  # another run was faster
                shutil.rmtree(building)
        return template


def _program(name: str) -> str:
    return shutil.which(name) or f"/usr/sbin/{name}"


def _user() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []
