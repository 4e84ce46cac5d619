"""One line of `ops-mail check`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a step went. `warn` works but deserves a look; `skipped` could not be tried because of an earlier one."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Row:
    """`group` is settings, database or a mailbox; `advice` says what to do and names the setting."""

    group: str
    step: str
    verdict: Verdict
    detail: str
    advice: str = ""

    def as_json(self) -> dict[str, str]:
        """For machines."""
        return {
            "group": self.group,
            "step": self.step,
            "verdict": self.verdict.value,
            "detail": self.detail,
            "advice": self.advice,
        }


Rows = AsyncGenerator[Row, None]


def skipped(group: str, steps: tuple[str, ...], because: str) -> list[Row]:
    """The rest of a group after a step that failed."""
    return [Row(group, step, Verdict.SKIPPED, f"because of {because}") for step in steps]
