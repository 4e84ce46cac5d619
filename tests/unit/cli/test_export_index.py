"""The index of exported mails is complete however often, and however unluckily, mails are added."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ops_mail.cli.export_index import INDEX, ExportIndex
from ops_mail.errors import OpsMailError


def add(folder: Path, *ids: int, note: str = "") -> None:
    with ExportIndex(folder) as index:
        for one in ids:
            (folder / f"{one}.eml").touch()
            index.add(one, {"id": one, "file": f"{one}.eml", "note": note})


def told(folder: Path) -> list[tuple[int, str]]:
    return [(line["id"], line["note"]) for line in map(json.loads, (folder / INDEX).read_text().splitlines())]


def test_lines_of_other_mails_stay_and_those_of_the_same_are_new(tmp_path: Path) -> None:
    add(tmp_path, 9, 5, 1, note="first")
    add(tmp_path, 7, 5, note="second")
    assert told(tmp_path) == [(9, "first"), (7, "second"), (5, "second"), (1, "first")]
    add(tmp_path, 10, 1, note="third")
    assert told(tmp_path) == [(10, "third"), (9, "first"), (7, "second"), (5, "second"), (1, "third")]
    add(tmp_path)
    assert len(told(tmp_path)) == 5
    assert not list(tmp_path.glob("*.part"))


def test_a_mail_whose_file_was_taken_away_is_no_longer_told_but_one_without_bytes_is(tmp_path: Path) -> None:
    with ExportIndex(tmp_path) as index:
        index.add(3, {"id": 3, "file": None, "note": "no bytes"})
    add(tmp_path, 2, 1)
    (tmp_path / "2.eml").unlink()
    add(tmp_path)
    assert told(tmp_path) == [(3, "no bytes"), (1, "")]


def test_an_export_that_ends_early_tells_of_what_it_has_written_and_of_all_before(tmp_path: Path) -> None:
    add(tmp_path, 9, 5, 1, note="first")

    def cut_short() -> None:
        with ExportIndex(tmp_path) as index:
            index.add(9, {"id": 9, "file": "9.eml", "note": "second"})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_short()
    assert told(tmp_path) == [(9, "second"), (5, "first"), (1, "first")]


def test_until_the_end_the_old_index_is_there_whole(tmp_path: Path) -> None:
    add(tmp_path, 2, 1, note="first")
    before = (tmp_path / INDEX).read_bytes()
    with ExportIndex(tmp_path) as index:
        index.add(3, {"id": 3, "file": None, "note": "second"})
        assert (tmp_path / INDEX).read_bytes() == before
    assert told(tmp_path) == [(3, "second"), (2, "first"), (1, "first")]


def test_two_at_a_time_are_one_too_many(tmp_path: Path) -> None:
    with ExportIndex(tmp_path), pytest.raises(OpsMailError, match=r"another export into .* is going on"):
        add(tmp_path, 1)
    add(tmp_path, 2)


@pytest.mark.parametrize("content", ["id,file\n1,1.eml\n", '{"id": 1}\n{"id": 2}\n', '{"id": "x"}\n', "[1]\n"])
def test_an_index_that_is_none_of_ours_is_left_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / INDEX).write_text(content)
    with pytest.raises(OpsMailError, match=r"index.jsonl, line [12]: no index that this command has written"):
        add(tmp_path, 5)
    assert (tmp_path / INDEX).read_text() == content
    (tmp_path / INDEX).unlink()
    add(tmp_path, 5)


def test_a_last_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    add(tmp_path, 3, 2, note="first")
    with (tmp_path / INDEX).open("a") as file:
        file.write('{"id": 1, "fi')
    add(tmp_path, 4, note="second")
    assert told(tmp_path) == [(4, "second"), (3, "first"), (2, "first")]
