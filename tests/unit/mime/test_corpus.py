"""The corpus beside the repository: 786 mails of other projects' test suites, 377 with values that people stated."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"

# Every stated value by a person that is not ours, and why. Nothing else may differ.
ON_PURPOSE = {
    ("kopano-inetmapi/inetmapi__tests__mails__zcp-11699-ub.eml", "subject"): (
        "'dum NUL my': stated is the text up to the NUL, as programs in C have it; we leave the NUL out alone"
    ),
    ("kopano-inetmapi/inetmapi__tests__mails__zcp-11699-utf8.eml", "subject"): "the same mail in another charset",
    ("zammad/mail18.box", "subject"): (
        "an encoded word with spaces in it: stated is the undecoded source, we show the text that was meant"
    ),
    (
        "redmine/invalid_utf8.eml",
        "text_contains",
    ): "an invalid byte: stated is '?', we show U+FFFD, which is no question mark",
    ("stalwart-mail-parser/legacy__034.eml", "text_contains"): (
        "the UTF-7 of the body is wrong (+XKM- for three letters): what is stated cannot be had from the bytes"
    ),
    ("otrs/scripts__test__sample__EmailParser__PostMaster-Test16.box", "attachments"): (
        "stated is the HTML alternative of the text as an attachment; to us it is html_body"
    ),
}


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `ops-mail parse --json` prints for every mail of the corpus."""
    files = [line.split("\t")[0] for line in (CORPUS / "INDEX.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    output = tmp_path_factory.mktemp("corpus") / "parsed.jsonl"
    with output.open("wb") as out:
        command = [sys.executable, "-m", "ops_mail", "parse", "--json", *(str(CORPUS / file) for file in files)]
        subprocess.run(command, stdout=out, check=True, timeout=100)
    return output


@pytest.fixture(scope="module")
def records(parsed: Path) -> dict[str, dict[str, Any]]:
    lines = [json.loads(line) for line in parsed.read_text(encoding="utf-8").splitlines()]
    return {"/".join(Path(line["file"]).parts[-2:]): line for line in lines}


@pytest.fixture(scope="module")
def score() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score", CORPUS / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_at_least_99_of_100_values_that_people_stated_are_ours(parsed: Path) -> None:
    command = [sys.executable, str(CORPUS / "score.py"), str(parsed), "--min", "99"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout
    assert "crashed: 0 of 786" in done.stdout


def test_each_value_that_differs_is_listed_with_its_reason(
    records: dict[str, dict[str, Any]], score: ModuleType
) -> None:
    differing = set()
    for line in (CORPUS / "expected.jsonl").read_text(encoding="utf-8").splitlines():
        stated = json.loads(line)
        for field in score.FIELDS:
            by_hand = stated["quality"].get(field, "").startswith("handwritten")
            is_scored = field in stated and field not in stated.get("doubtful", []) and by_hand
            if is_scored and not score.judge(field, stated, records[stated["file"]]):
                differing.add((stated["file"], field))
    assert differing == set(ON_PURPOSE)


def test_no_mail_makes_the_parser_fail_or_run_out_of_time(records: dict[str, dict[str, Any]]) -> None:
    assert len(records) == 786
    failed = {name for name, record in records.items() if {"parser_failed", "time_limit"} & set(record["defects"])}
    assert failed == set()
