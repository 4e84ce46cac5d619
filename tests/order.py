"""Beside other processes, the files that take longest start first: the last minute then uses all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent

LONGEST_FIRST = (
    "integration/handlers/test_processes.py",
    "integration/listener/test_stopping.py",
    "integration/mime/test_reparse.py",
    "integration/faults/test_guard_faults.py",
    "integration/faults/test_races.py",
    "integration/faults/test_kill.py",
    "browser/test_use.py",
    "chaos/test_short.py",
    "integration/deploy/test_runbook.py",
    "browser/test_looks.py",
    "integration/deploy/test_grants.py",
    "integration/web/test_process.py",
    "integration/mime/test_reparse_faults.py",
    "integration/faults/test_database_faults.py",
    "integration/faults/test_health_truth_table.py",
    "integration/listener/test_main_job.py",
    "integration/listener/test_two_instances.py",
    "integration/listener/test_start_faults.py",
    "integration/faults/test_clocks.py",
    "integration/handlers/test_operators.py",
    "integration/cli/test_check_database.py",
    "integration/cli/test_status.py",
    "integration/handlers/test_examples.py",
    "integration/demo/test_demo.py",
    "integration/cli/test_check.py",
    "integration/mime/test_corpus_lands.py",
    "integration/store/test_faults.py",
    "integration/deploy/test_alert_rules.py",
    "integration/deploy/test_service_unit.py",
)
"""By the time that each takes, from a minute to ten seconds; all others are shorter."""

_PLACES = {HERE / name: place for place, name in enumerate(LONGEST_FIRST)}


def place(path: Path) -> int:
    """Where a test file stands in line; the rest keep their order behind those named."""
    return _PLACES.get(path, len(_PLACES))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Does nothing when one process runs all."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: place(item.path))
