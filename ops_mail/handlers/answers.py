"""What a handler may say: return anything that is JSON, return `Done`, or raise one of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ops_mail.store.attempts import Write

__all__ = ["Discard", "Done", "Permanent", "RetryLater", "Write"]


@dataclass(frozen=True, slots=True)
class Done:
    """The mail is handled. `writes` are done in the same transaction that marks it as done: both happen, or neither.

    So an effect in the same database happens exactly once, whatever is killed when. Each statement is an INSERT,
    REPLACE, UPDATE, DELETE or SELECT; only tables whose names begin with `ops_`, and not with `ops_mail_`, can be
    written. Values are text, bytes, numbers, dates, times or None; all of it together is 8 MiB at most. When a
    statement is refused nothing of any stays, and the attempt counts as failed.
    """

    result: Any = None
    writes: Sequence[Write] = ()


class Discard(Exception):
    """Nothing is to be done with this mail: its status becomes `skipped`."""


class Permanent(Exception):
    """Trying again cannot help: the mail is dead at once."""


class RetryLater(Exception):
    """Try again, not before `seconds` from now (at most an hour). Counts as an attempt.

    With `pause_all` no other mail is handled by this process until then either: a remote side is out of order or wants
    fewer requests, and there is no point in using up the attempts of all other mails meanwhile.
    """

    def __init__(self, message: str, *, seconds: float, pause_all: bool = False) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.pause_all = pause_all
