"""`ops-mail parse`: how files would land."""

# ruff: noqa: PLC0415 - rich is imported only when it draws

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ops_mail.cli.many_files import Outcome, in_order
from ops_mail.cli.terminal import json_line, printable
from ops_mail.mime import parse_mail, report

if TYPE_CHECKING:
    from rich.console import Console

STANDARD_INPUT = "-"


def parse_command(files: Sequence[Path], *, as_json: bool) -> int:
    """Prints each file's record as soon as it and those before it are there; 1 when a file could not be read."""
    names = [str(file) for file in files]
    failed = 0
    if as_json:
        for outcome in in_order(_json_line_of, names):
            failed += outcome.failed
            sys.stdout.buffer.write(outcome.line)
            sys.stdout.buffer.flush()
        return 1 if failed else 0

    from rich.console import Console

    console = Console()
    for name in names:
        failed += not _show(console, name)
    return 1 if failed else 0


def _json_line_of(name: str) -> Outcome:
    """Runs in a helper process when there are many files."""
    try:
        raw = _read(name)
    except OSError as error:
        return Outcome(json_line({"file": name, "error": _reason(error)}), failed=True)
    return Outcome(json_line(report.as_json(name, parse_mail(raw))), failed=False)


def _show(console: Console, name: str) -> bool:
    from ops_mail.cli.mail_panel import mail_panel

    try:
        raw = _read(name)
    except OSError as error:
        sys.stderr.write(f"{printable(name)}: {_reason(error)}\n")
        return False
    console.print(mail_panel(name, parse_mail(raw)))
    return True


def _read(name: str) -> bytes:
    return sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
