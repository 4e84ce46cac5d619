"""What `main` makes of whatever a command raises."""

from __future__ import annotations

import pytest

from ops_mail.cli import main
from ops_mail.errors import ConfigError, OpsMailError
from ops_mail.settings import register_secret


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (ConfigError(["OPS_MAIL_A: one", "OPS_MAIL_B: two"]), 78, "OPS_MAIL_A: one\nOPS_MAIL_B: two\n"),
        (OpsMailError("the database is away"), 1, "the database is away\n"),
        (OpsMailError("server says \x1b[2Jbye"), 1, "server says \\u001b[2Jbye\n"),
    ],
)
def test_expected_failures_are_told_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, code: int, says: str
) -> None:
    assert _exit_code(monkeypatch, error) == code
    assert capsys.readouterr().err == says


def test_a_bug_is_told_with_its_traceback_but_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    register_secret("geheim-99")
    assert _exit_code(monkeypatch, KeyError("geheim-99")) == 1
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert told.endswith("KeyError: '***'\n")
    assert "geheim-99" not in told


def _exit_code(monkeypatch: pytest.MonkeyPatch, error: Exception) -> object:
    def fail() -> None:
        raise error

    monkeypatch.setitem(main.__globals__, "app", fail)
    with pytest.raises(SystemExit) as exited:
        main()
    return exited.value.code
