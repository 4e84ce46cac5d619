"""The options by which `dead` and `messages` are told which mails are meant."""

from __future__ import annotations

import getpass
import re
import socket
from typing import Annotated

import typer

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(r"(\d{1,9}(?:\.\d+)?)\s*(s|min|m|h|d|w)", re.IGNORECASE)


def age_seconds(text: str) -> float:
    """`90s`, `30m`, `2h`, `7d` or `2w` in seconds. Raises typer.BadParameter."""
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no age: write 90s, 30m, 2h, 7d or 2w")
    return float(found[1]) * _UNITS[found[2].lower()]


Names = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="Mails by id, or by key (mailbox/folder/uidvalidity/uid).")
]
OneName = Annotated[str, typer.Argument(metavar="ID", help="A mail's id, or key (mailbox/folder/uidvalidity/uid).")]
Mailbox = Annotated[str | None, typer.Option(metavar="NAME", help="Of this mailbox alone.")]
Older = Annotated[
    float | None, typer.Option("--older-than", parser=age_seconds, metavar="AGE", help="Unchanged for so long: 2h, 7d.")
]
Newer = Annotated[
    float | None, typer.Option("--newer-than", parser=age_seconds, metavar="AGE", help="Changed within so long.")
]
Error = Annotated[str | None, typer.Option("--error", metavar="TEXT", help="With this text in the last error.")]
Limit = Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")]
Json = Annotated[bool, typer.Option("--json", help="JSON for machines.")]


def who() -> str:
    """Who acts, for the audit trail: the account and the machine."""
    try:
        account = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        account = "unknown"
    return f"{account}@{socket.gethostname()}"[:200]
