"""The process's folder for large mails in flight; what a killed process left behind goes away with the next start.

Its owner holds a lock on a file in it for as long as it lives, however it ends. So a lock that can be had proves that
the owner is dead, also where its process number says nothing: in another container, or given to somebody else since.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "ops-mail-spool-"
_LOCK = ".owner-lives"


@contextmanager
def spool_root() -> Iterator[Path]:
    """A fresh folder in the system's temporary directory, removed at the end. Raises OSError without a place for it."""
    _remove_orphans(Path(tempfile.gettempdir()))
    path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        lock = _mark_as_living(path)
        try:
            yield path
        finally:
            os.close(lock)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _mark_as_living(path: Path) -> int:
    """The lock file gets its name only when the lock is held: nobody ever sees one of a living owner without it."""
    unnamed = path / f"{_LOCK}.new"
    lock = os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unnamed.rename(path / _LOCK)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _remove_orphans(directory: Path) -> None:
    for path in directory.glob(f"{_PREFIX}*"):
        # Another process that starts now may have removed it already: nothing here is a reason not to start.
        with suppress(OSError):
            _remove_orphan(path)


def _remove_orphan(path: Path) -> None:
    """Raises OSError when it is not ours to remove: without a lock file, or its owner lives."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return  # anybody may put anything under such a name
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)
