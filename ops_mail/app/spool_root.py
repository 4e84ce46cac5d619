"""The process's folder for large mails in flight; what a killed process left behind goes away with the next start."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "ops-mail-spool-"


@contextmanager
def spool_root() -> Iterator[Path]:
    """A fresh folder in the system's temporary directory, removed at the end. Raises OSError without a place for it."""
    _remove_orphans(Path(tempfile.gettempdir()))
    path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _remove_orphans(directory: Path) -> None:
    for path in directory.glob(f"{_PREFIX}*"):
        pid = path.name.removeprefix(_PREFIX).split("-")[0]
        # Another process that starts now may have removed it already: nothing here is a reason not to start.
        with suppress(OSError, ValueError, OverflowError):  # the latter: a name that anybody may make up
            if pid.isdigit() and not _alive(int(pid)) and path.stat().st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
