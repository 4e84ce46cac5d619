"""MySQL itself: the machine's own, or the one in a Debian root folder that is kept in the tests' cache.

The root folder is made once, as root: `debootstrap --variant=minbase --include=mysql-server-core sid FOLDER`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.servers.process import SqlServer, cache_folder


class MySql(SqlServer):
    """`mysqld` of Oracle's MySQL. The data directory is copied from one that was initialised once."""

    def prepare(self) -> None:
        """Copies the template. In a root folder the data lives below it: the server sees nothing else."""
        self.root = _root()
        self.data = (self.folder if self.root is None else self.root / "tmp" / self.folder.name) / "data"
        shutil.copytree(_template(self.root), self.data)
        (self.data.parent / "tmp").mkdir()

    def clean(self) -> None:
        """Removes the data below the root folder."""
        data: Path | None = getattr(self, "data", None)
        if data is not None and data.name == "data":
            shutil.rmtree(data.parent, ignore_errors=True)

    def command(self) -> list[str]:
        """Loopback only, no X protocol."""
        inside = _inside(self.root, self.data)
        return [
            *_server(self.root),
            f"--datadir={inside}",
            f"--tmpdir={_inside(self.root, self.data.parent / 'tmp')}",  # not shared, as MariaDB's
            f"--socket={inside}/socket",
            f"--pid-file={inside}/pid",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--mysqlx=OFF",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=64M",
            "--innodb-redo-log-capacity=64M",
            "--innodb-flush-log-at-trx-commit=1",
            "--skip-log-bin",
            "--performance-schema=OFF",
            "--max-connections=200",
        ]


def _root() -> Path | None:
    """None if the machine's own `mysqld` is MySQL; otherwise the folder of the root that holds one."""
    own = shutil.which("mysqld")
    if own and b"MariaDB" not in subprocess.run([own, "--version"], capture_output=True, check=True).stdout:
        return None
    root = cache_folder() / "mysql-root"
    if not (root / "usr/sbin/mysqld").exists():
        raise RuntimeError(f"no MySQL here: make {root} with debootstrap as {__file__} says")
    return root


def _server(root: Path | None) -> list[str]:
    user = ["--user=root"] if os.geteuid() == 0 else []
    chroot = ["chroot", str(root)] if root is not None else []
    return [*chroot, "mysqld", "--no-defaults", "--secure-file-priv=", *user]


def _inside(root: Path | None, path: Path) -> str:
    return str(path) if root is None else f"/{path.relative_to(root)}"


def _template(root: Path | None) -> Path:
    version = subprocess.run([*_server(root)[:-1], "--version"], capture_output=True, check=True).stdout.decode()
    name = f"mysql-{version.split('Ver ')[1].split()[0]}"
    template = (cache_folder() if root is None else root / "tmp") / name
    if not template.exists():
        building = template.with_name(f"{name}.{os.getpid()}")
        shutil.rmtree(building, ignore_errors=True)
        building.parent.mkdir(parents=True, exist_ok=True)
        building.mkdir()
        # MySQL's own administrator may only come by socket, and a socket's path must be short.
        first = building.with_suffix(".sql")
        first.write_text(
            "CREATE USER 'root'@'127.0.0.1' IDENTIFIED BY '';\n"
            "GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        options = [f"--datadir={_inside(root, building)}", f"--init-file={_inside(root, first)}", "--mysqlx=OFF"]
        subprocess.run([*_server(root), *options, "--initialize-insecure"], check=True, capture_output=True)
        first.unlink()
        try:
            building.rename(template)
        except OSError:  # another run was faster
            shutil.rmtree(building)
    return template
