"""The chaos run, short: every kind of fault at least once."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.plan import Kind, draw_steps
from tests.chaos.run import run
from tests.servers.mariadb import MariaDb

SEED, FAULTS, MAILS = 3, len(Kind), 300


async def test_every_kind_of_fault_while_mails_arrive_loses_and_doubles_nothing(tmp_path: Path) -> None:
    report = await run(SEED, FAULTS, MAILS, MariaDb(), tmp_path)
    print(report.text())
    assert report.lost == []
    assert report.duplicated == []
    assert report.unclean_exits == []
    assert set(report.faults) == {kind.value for kind in Kind}
    assert report.mails >= MAILS


def test_a_seed_always_draws_the_same_run() -> None:
    once, again = (list(draw_steps(7, 120, 3_000)) for _ in range(2))
    assert once == again
    assert once != list(draw_steps(8, 120, 3_000))
    assert sum(step.mails for step in once) == 3_000
    assert sum(len(step.faults) for step in once) == 120
