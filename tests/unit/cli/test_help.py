"""How the help reads: names of values, not their types in Python."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from ops_mail.cli.main import app

COMMANDS = ["", "check", "status", "verify", "parse", "reparse", "demo", "messages", "messages list", "messages export"]
COMMANDS += ["dead", "dead retry"]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_type_and_no_doubled_bracket_is_shown(command: str) -> None:
    told = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "120"})
    assert told.exit_code == 0
    assert "Usage:" in told.output
    for bad in ("<bool", "<list", "<str", "<path", "<int", "<float", "[[", "…]"):
        assert bad not in told.output
