"""What `Done.writes` may be: checked where the handler runs, whatever is in it."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from ops_mail.core.outcome import EndKind
from ops_mail.handlers import Done, Write
from ops_mail.handlers.answering import answer_of_return
from ops_mail.handlers.own_writes import MAX_BYTES

SQL = "INSERT INTO ops_x (a) VALUES (:a)"


class Unreadable(dict[str, Any]):
    def keys(self) -> Any:
        raise KeyError("no")

    def __iter__(self) -> Iterator[str]:
        raise KeyError("no")


@pytest.mark.parametrize(
    ("writes", "says"),
    [
        (SQL, "must be a list of Write, not str"),
        ([SQL], "must hold Write"),
        ([Write(None)], "must hold Write"),  # type: ignore[arg-type]  # the mistake
        ([Write(b"SELECT 1")], "must hold Write"),  # type: ignore[arg-type]  # the mistake
        ([Write(SQL, [1])], "must hold Write"),  # type: ignore[arg-type]  # the mistake
        ([Write(SQL, {1: 1})], "no text as its name"),  # type: ignore[dict-item]  # the mistake
        ([Write(SQL, Unreadable(a=1))], "KeyError"),
        ([Write(SQL, {"a": {"b": 1}})], "parameter 'a' of a statement is a dict"),
        ([Write(SQL, {"a": ["b"]})], "is a list"),
        ([Write(SQL, {"a": object()})], "is a object"),
        ([Write(SQL, {"a": "x" * MAX_BYTES})], "too large"),
        ([Write("COMMIT")], "COMMIT is none of"),
    ],
)
def test_what_cannot_be_written_is_the_attempts_failure(writes: Any, says: str) -> None:
    answer = answer_of_return(Done({"done": True}, writes=writes))
    assert (answer.kind, answer.writes) == (EndKind.FAILED, ())
    assert says in (answer.error or "")


def test_what_is_to_be_written_no_longer_changes() -> None:
    values: dict[str, Any] = {
        "a": "text", "b": b"bytes", "c": 1, "d": 1.5, "e": None, "f": True, "g": decimal.Decimal("1.10"),
        "h": dt.datetime.now(dt.UTC), "i": dt.date(2026, 1, 5), "j": uuid.uuid4(),
    }  # fmt: skip
    writes = [Write(SQL, values)]
    answer = answer_of_return(Done(writes=writes))
    kept = dict(values)
    values["a"] = "changed by a thread of the handler's"
    writes.clear()
    assert answer.writes == (Write(SQL, kept),)
