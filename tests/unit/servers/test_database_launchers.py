from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.mariadb import MariaDb
from tests.servers.mysql import MySql
from tests.servers.process import SqlServer


@pytest.mark.parametrize("kind", [MariaDb, MySql])
def test_stopping_what_was_never_started_removes_nothing(
    kind: type[SqlServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("kept")
    monkeypatch.chdir(tmp_path)
    server = kind()
    server.stop()
    server.stop()
    assert (tmp_path / "precious" / "file").read_text() == "kept"
    with pytest.raises(RuntimeError, match="not started"):
        _ = server.folder


@pytest.mark.parametrize("kind", [MariaDb, MySql])
def test_a_start_that_fails_removes_its_own_folder_alone(
    kind: type[SqlServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "precious").write_text("kept")

    def fail(_: SqlServer) -> None:
        raise OSError("no room")

    monkeypatch.setattr(kind, "prepare", fail)
    server = kind()
    with pytest.raises(OSError, match="no room"):
        server.start()
    server.stop()
    assert [entry.name for entry in tmp_path.iterdir()] == ["precious"]
