"""The rows for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ops_mail.cli.check.rows import Row, Verdict
from ops_mail.cli.terminal import printable
from ops_mail.core.counted import counted

_STYLES = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red", Verdict.SKIPPED: "dim"}


def print_rows(rows: Sequence[Row]) -> None:
    """A table for people, and one line that sums it up."""
    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("", "step", "", "what was found, and what to do"):
        table.add_column(heading, overflow="fold")
    group = None
    for row in rows:
        if group not in (None, row.group):
            table.add_row()
        first = Text(printable(row.group) if row.group != group else "", style="bold")
        table.add_row(first, row.step, Text(row.verdict.value, style=_STYLES[row.verdict]), _told(row))
        group = row.group
    console.print(table)
    console.print()
    console.print(_sum(rows))


def _told(row: Row) -> Text:
    text = Text(printable(row.detail), style="dim" if row.verdict is Verdict.SKIPPED else "")
    if row.advice:
        text.append("\n→ " + printable(row.advice), style=_STYLES[row.verdict])
    return text


def _sum(rows: Sequence[Row]) -> Text:
    failed = sum(row.verdict is Verdict.FAIL for row in rows)
    warned = sum(row.verdict is Verdict.WARN for row in rows)
    if failed:
        return Text(f"{failed} of {counted(len(rows), 'step')} failed", style=_STYLES[Verdict.FAIL])
    if warned:
        return Text(f"all well, with {counted(warned, 'warning')}", style=_STYLES[Verdict.WARN])
    return Text("all well", style=_STYLES[Verdict.OK])
