from __future__ import annotations

from tests.order import HERE, LONGEST_FIRST, place


def test_the_files_that_start_first_exist_and_come_before_all_others() -> None:
    assert [name for name in LONGEST_FIRST if not (HERE / name).is_file()] == []
    assert [place(HERE / name) for name in LONGEST_FIRST] == list(range(len(LONGEST_FIRST)))
    assert place(HERE / "unit/tooling/test_order.py") == len(LONGEST_FIRST)
