"""What a run showed: for people as text, to keep as JSON."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.plan import Group
from tests.chaos.world import BACKOFF_SECONDS, COMMAND_SECONDS, IDLE_SECONDS

BOUNDS = {
    Group.REACHABLE: BACKOFF_SECONDS + COMMAND_SECONDS,
    Group.SILENT: BACKOFF_SECONDS + COMMAND_SECONDS + IDLE_SECONDS,
}
"""Promised seconds from a fault's end to the next mail's row."""


@dataclass
class Report:
    """`recoveries`: (group, kinds of the step, seconds)."""

    seed: int
    server: str
    recoveries: list[tuple[Group, tuple[str, ...], float]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    mails: int = 0
    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    unclean_exits: list[int] = field(default_factory=list)
    epochs: int = 0
    seconds: float = 0.0

    def compare(self, expected: Counter[str], rows: Counter[str]) -> None:
        """By content hash, each as often as it was there."""
        self.mails = expected.total()
        self.lost = sorted((expected - rows).elements())
        self.duplicated = sorted((rows - expected).elements())

    @property
    def good(self) -> bool:
        return not self.lost and not self.duplicated and not self.unclean_exits

    def as_json(self) -> dict[str, object]:
        by_kind: dict[str, list[float]] = defaultdict(list)
        for _, kinds, seconds in self.recoveries:
            by_kind["+".join(kinds)].append(seconds)
        return {
            "seed": self.seed,
            "server": self.server,
            "mails": self.mails,
            "lost": len(self.lost),
            "duplicated": len(self.duplicated),
            "lost_sha256": self.lost[:50],
            "duplicated_sha256": self.duplicated[:50],
            "faults": self.faults.total(),
            "faults_by_kind": dict(sorted(self.faults.items())),
            "unclean_exit_codes": self.unclean_exits,
            "takeovers": self.epochs,
            "seconds": round(self.seconds, 1),
            "recovery_seconds": {group.value: self._group(group) for group in Group},
            "recovery_seconds_by_kind": {
                kind: _figures(values) for kind, values in sorted(by_kind.items()) if "+" not in kind
            },
        }

    def _group(self, group: Group) -> dict[str, object]:
        figures: dict[str, object] = dict(_figures([seconds for one, _, seconds in self.recoveries if one is group]))
        if group in BOUNDS:
            figures["promised_p99"] = BOUNDS[group]
        return figures

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.as_json(), indent=1) + "\n")

    def text(self) -> str:
        lines = [
            f"seed {self.seed} on {self.server}, {self.seconds:.0f} s",
            f"{self.faults.total()} faults, {self.mails} mails",
            f"{len(self.lost)} lost, {len(self.duplicated)} duplicated, {self.epochs} takeovers",
            *(f"  {count:4d} {kind}" for kind, count in sorted(self.faults.items())),
            "from a fault's end to the next mail's row:",
        ]
        for group in Group:
            shown = self._group(group)
            lines.append(f"  {group.value:26} " + ", ".join(f"{name} {value}" for name, value in shown.items()))
        if self.unclean_exits:
            lines.append(f"exit codes after SIGTERM other than 0: {self.unclean_exits}")
        return "\n".join(lines)


def _figures(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    if not ordered:
        return {"steps": 0}
    return {
        "steps": len(ordered),
        "p50": round(_percentile(ordered, 0.5), 2),
        "p99": round(_percentile(ordered, 0.99), 2),
        "max": round(ordered[-1], 2),
    }


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
