"""What a handler did is done, whatever it returns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from ops_mail.core.outcome import EndKind
from ops_mail.handlers.answering import RESULT_BYTES, RESULT_LEVELS, answer_of_return
from ops_mail.handlers.answers import Done, Write
from ops_mail.settings import register_secret


class Hostile(dict[str, Any]):
    """Fails while it is read."""

    def items(self) -> Any:
        raise KeyError("geheim-77 " + "x" * 10_000)

    def __iter__(self) -> Iterator[str]:
        raise KeyError("geheim-77 " + "x" * 10_000)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_a_result_is_kept_as_deep_as_every_database_takes_it() -> None:
    deepest = nested(RESULT_LEVELS - 1)
    assert answer_of_return(deepest).result == deepest
    refused = answer_of_return([deepest])
    assert (refused.kind, refused.result) == (EndKind.SUCCEEDED, None)
    assert "more than 30 levels" in (refused.error or "")


@pytest.mark.parametrize(
    ("result", "names"),
    [
        ({"total": Decimal(1)}, "Decimal"),
        ({1, 2}, "set"),
        ({(1, 2): 3}, "tuple"),
        (float("nan"), "float"),
        (type("L" * 500, (), {})(), "L" * 80),
        (Hostile(a=1), "Hostile"),
        (nested(600), "list"),
        (nested(5000), "list"),
        (10**5000, "int"),
    ],
    ids=["decimal", "set", "key", "nan", "long-name", "hostile", "nested", "deep", "huge-number"],
)
def test_a_result_that_is_no_json_is_a_success_that_names_its_type(result: object, names: str) -> None:
    register_secret("geheim-77")
    write = Write("INSERT INTO ops_x VALUES (1)")
    answer = answer_of_return(Done(result, writes=[write]))
    assert (answer.kind, answer.result, answer.writes) == (EndKind.SUCCEEDED, None, (write,))
    assert answer.error is not None
    assert answer.error.startswith("the result (")
    assert ") was not kept, it is no JSON: " in answer.error
    assert names in answer.error
    assert len(answer.error) <= 500
    assert "geheim" not in answer.error


def test_a_result_that_is_too_long_is_told_with_its_length() -> None:
    answer = answer_of_return("x" * RESULT_BYTES)
    assert (answer.kind, answer.result) == (EndKind.SUCCEEDED, None)
    assert answer.error == "the result (str) was not kept, it is too long: 65538 bytes of JSON, at most 65536"


@pytest.mark.parametrize(
    "result",
    ["x" * 2_000_000, ["x" * 100] * 20_000, {"a": {"b": ({},) * 2_000_000}}, {"k" * 2_000_000: 1}],
    ids=["text", "texts", "empty-objects", "key"],
)
def test_a_result_that_is_far_too_long_is_not_even_made_json(result: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "dumps", lambda *_args, **_more: pytest.fail("it would take the interpreter's time"))
    answer = answer_of_return(result)
    assert (answer.kind, answer.result) == (EndKind.SUCCEEDED, None)
    assert "too long: at most 65536 bytes" in (answer.error or "")


def test_a_result_that_is_json_is_kept_as_it_is() -> None:
    result = {"a": [1, 2.5, None, True, "ü\n"], "b": {"c": ()}}
    answer = answer_of_return(result)
    assert (answer.kind, answer.error) == (EndKind.SUCCEEDED, None)
    assert answer.result == {"a": [1, 2.5, None, True, "ü\n"], "b": {"c": []}}
