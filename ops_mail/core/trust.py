"""Is this server's IDLE to be believed? Counted from what it announced and what a sync found all the same.

QQ and Exmail accept IDLE and may never push; a middlebox may swallow pushes for hours. Each such miss costs at
most one IDLE window (promise P5); a server that keeps missing is looked at more often until it pushes again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_DISTRUST_AFTER = 3


@dataclass(frozen=True, slots=True)
class IdleTrust:
    """`missed_in_a_row` counts waits whose following sync found mail that no push had announced."""

    missed_in_a_row: int = 0

    def after_wait(self, *, pushed: bool, found: int) -> IdleTrust:
        """The trust after one IDLE wait: `pushed` = the server announced something; `found` mails in the sync."""
        if pushed:
            return IdleTrust()
        if found:
            return replace(self, missed_in_a_row=self.missed_in_a_row + 1)
        return self

    @property
    def trusted(self) -> bool:
        return self.missed_in_a_row < _DISTRUST_AFTER

    def window_seconds(self, idle_seconds: float, poll_seconds: float) -> float:
        """How long the next IDLE may last."""
        return idle_seconds if self.trusted else min(idle_seconds, poll_seconds)
