"""How to go on with a mail whose fetching broke the session: alone, then header only, then without bytes.

A server may fail on one very mail for ever (Exchange answers `NO` or drops the connection on an item whose
MIME it cannot build). Without a memory of suspects that mail would stop its folder (promise P4).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ops_mail.errors import Failure


class FetchPlan(StrEnum):
    """How a mail is fetched next."""

    TOGETHER = "together"
    ALONE = "alone"
    HEADER_ONLY = "header_only"
    GIVE_UP = "give_up"


# A refusal in the protocol is about this mail; a lost connection may be the line's fault and earns more patience.
_REFUSED_LIMIT = 3
_BROKEN_LIMIT = 5


@dataclass(frozen=True, slots=True)
class FetchRecord:
    """What happened so far when this mail was fetched: in a batch with others, alone, and header only."""

    together: int = 0
    alone_refused: int = 0
    alone_broken: int = 0
    header_failures: int = 0

    def after(self, failure: Failure, plan: FetchPlan) -> FetchRecord:
        """The record after one more failure of kind `failure` under `plan`."""
        refused = failure is Failure.PROTOCOL
        if plan is FetchPlan.TOGETHER:
            return FetchRecord(self.together + 1, self.alone_refused, self.alone_broken, self.header_failures)
        if plan is FetchPlan.ALONE:
            return FetchRecord(
                self.together, self.alone_refused + refused, self.alone_broken + (not refused), self.header_failures
            )
        return FetchRecord(self.together, self.alone_refused, self.alone_broken, self.header_failures + 1)

    @property
    def plan(self) -> FetchPlan:
        """What to try next."""
        if self.header_failures >= _REFUSED_LIMIT:
            return FetchPlan.GIVE_UP
        if self.alone_refused >= _REFUSED_LIMIT or self.alone_broken >= _BROKEN_LIMIT:
            return FetchPlan.HEADER_ONLY
        return FetchPlan.ALONE if self.together else FetchPlan.TOGETHER
