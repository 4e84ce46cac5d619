"""A killed process's folder goes with the next start, a living one's never."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ops_mail.app.spool_root import spool_root

ROOT = Path(__file__).resolve().parents[3]
_SOURCE = ROOT / "ops_mail" / "app" / "spool_root.py"
_OWNER = f"""
import runpy, sys  # the file alone: loading all of its package takes seconds
with runpy.run_path({str(_SOURCE)!r})["spool_root"]() as path:
    (path / "mailbox").mkdir()
    (path / "mailbox" / "large").write_bytes(b"x" * 100)
    print(path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary directory, for this process and those that it starts."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@contextmanager
def owner() -> Iterator[subprocess.Popen[str]]:
    """Another process with a folder of its own."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _OWNER], stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def folder_of(process: subprocess.Popen[str]) -> Path:
    """As soon as it has made it."""
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_goes_and_a_living_ones_stays(temporary: Path) -> None:
    with owner() as living, owner() as killed:  # both load at the same time
        kept, orphan = folder_of(living), folder_of(killed)
        assert (kept / "mailbox" / "large").exists()
        assert (orphan / "mailbox" / "large").exists()
        killed.kill()
        killed.wait()
        assert orphan.exists()
        with spool_root() as mine:
            assert sorted(temporary.iterdir()) == sorted([kept, mine])
            assert (kept / "mailbox" / "large").exists()
        assert list(temporary.iterdir()) == [kept]
        living.communicate()
        assert list(temporary.iterdir()) == [], "one that ends in order takes its own along"


def test_what_only_looks_like_one_is_left_alone(temporary: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / ".owner-lives").touch()
    (temporary / "ops-mail-spool-link").symlink_to(elsewhere)
    (temporary / "ops-mail-spool-file").touch()
    (temporary / "ops-mail-spool-unmarked").mkdir()
    (temporary / "ops-mail-spool-odd").mkdir()
    (temporary / "ops-mail-spool-odd" / ".owner-lives").symlink_to(elsewhere / ".owner-lives")
    before = sorted(temporary.iterdir())
    with spool_root() as mine:
        assert mine.is_dir()
    assert sorted(temporary.iterdir()) == before
    assert (elsewhere / ".owner-lives").exists()
