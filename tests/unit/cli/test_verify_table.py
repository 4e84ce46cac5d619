"""What `verify` found can be read on a narrow terminal."""

from __future__ import annotations

import io

from rich.console import Console

from ops_mail.cli.verify import Finding
from ops_mail.cli.verify_table import print_findings

FINDINGS = [
    Finding("accounts-payable@subsidiary.example.org", "Archiv/Rechnungen", 1_234_567, 0, (), 12, 3, 45_678),
    Finding("orders", "INBOX", 900, 30, tuple(range(100, 120)), 0, 0, 0),
    Finding("alerts\x1b[2J", "INBOX", error="the server refused the login " + "x" * 100),
]


def shown(findings: list[Finding], width: int) -> list[str]:
    out = io.StringIO()
    print_findings(findings, Console(file=out, width=width, highlight=False))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_at_80_columns_no_figure_or_word_is_broken_and_only_the_mailbox_is_folded() -> None:
    lines = shown(FINDINGS, 80)
    table = lines[:8]
    assert table[0].split() == ["mailbox", "server", "missing", "extra", "pending", "re-keyed"]
    figures = next(line.split()[1:] for line in table if line.endswith("complete"))
    assert figures == ["1,234,567", "0", "12", "3", "45,678", "complete"]
    assert any(line.split()[1:] == ["900", "30", "0", "0", "0", "incomplete"] for line in table)
    assert any(line.split()[1:] == [*"–––––", "not", "compared"] for line in table)
    assert max(map(len, table)) <= 80
    name = "".join(line[: table[0].index("server") - 3].split("  ")[0].strip() for line in table[1:])
    assert "accounts-payable@subsidiary.example.org/Archiv/Rechnungen" in name


def test_figures_and_faults_are_explained_and_none_acts_on_the_terminal() -> None:
    lines = shown(FINDINGS, 80)
    for beginning in ("extra: ", "pending: ", "re-keyed: "):
        assert [line for line in lines if line.startswith(beginning)], beginning
    (missing,) = [line for line in lines if line.startswith("orders/INBOX: ")]
    assert "no row for UID 100, 101," in missing
    assert "119, …;" in missing
    (refused,) = [line for line in lines if "refused the login" in line]
    assert refused.startswith("alerts\\u001b[2J/INBOX: ")
    assert refused.endswith("x" * 100)
    assert shown([Finding("a", "INBOX", 5)], 80)[1:] == ["a/INBOX       5        0      0        0         0  complete"]
