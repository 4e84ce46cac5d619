"""What `verify` found, for people: legible on a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ops_mail.cli.terminal import printable
from ops_mail.cli.verify import Finding

_EXTRA = "extra: rows whose mails are no longer on the server; they stay"
_PENDING = "pending: new on the server; the running process lands them next"
_REKEYED = "re-keyed: landed before the server numbered the folder anew"


def print_findings(findings: Sequence[Finding], console: Console | None = None) -> None:
    """A row for each mailbox, what its figures mean, and what is wrong."""
    console = console or Console(highlight=False)
    console.print(_table(findings))
    for number, meaning in (
        (sum(one.extra for one in findings), _EXTRA),
        (sum(one.pending for one in findings), _PENDING),
        (sum(one.rekeyed for one in findings), _REKEYED),
    ):
        if number:
            console.print(Text(meaning, style="dim"))
    for one in findings:
        if not one.good:
            console.print(Text(printable(f"{one.name}/{one.folder}: {one.error or _missing(one)}")), soft_wrap=True)


def _table(findings: Sequence[Finding]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("mailbox", overflow="fold")
    for heading in ("server", "missing", "extra", "pending", "re-keyed"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for one in findings:
        figures = (one.on_server, one.missing, one.extra, one.pending, one.rekeyed)
        shown = ("–" if one.error else f"{figure:,}" for figure in figures)
        table.add_row(Text(printable(f"{one.name}/{one.folder}")), *shown, _verdict(one))
    return table


def _verdict(finding: Finding) -> Text:
    if finding.good:
        return Text("complete", style="green")
    return Text("not compared" if finding.error else "incomplete", style="bold red")


def _missing(finding: Finding) -> str:
    more = ", …" if finding.missing > len(finding.missing_uids) else ""
    uids = ", ".join(map(str, finding.missing_uids)) + more
    return f"no row for UID {uids}; the running process lands them at its next comparison, the first soon after a start"
