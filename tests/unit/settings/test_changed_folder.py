"""A handler may change the folder of the process; files named from the first one stay where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops_mail.settings import Secret
from ops_mail.store.engine import parse_url


def test_relative_paths_are_those_of_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "password").write_text("first\n")
    monkeypatch.chdir(tmp_path)
    secret = Secret("OPS_MAIL_IMAP_PASSWORD_FILE", path=Path("password"))
    url = parse_url("sqlite+aiosqlite:///ops-mail.db")
    monkeypatch.chdir("elsewhere")
    assert secret.reveal() == "first"
    assert url.database == str(tmp_path / "ops-mail.db")


@pytest.mark.parametrize("name", [":memory:", "/a/b.db", "file:x?mode=memory"])
def test_other_databases_stay_as_they_are(name: str) -> None:
    assert parse_url(f"sqlite+aiosqlite:///{name}").database == name.partition("?")[0]
    assert parse_url("sqlite+aiosqlite://").database is None
