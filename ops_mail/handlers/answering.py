"""From what a handler returns or raises to an answer that can be written down. Runs where the handler runs."""

from __future__ import annotations

import json
import math
import traceback
from dataclasses import dataclass
from typing import Any

from ops_mail.core.outcome import EndKind
from ops_mail.core.textfit import scrub
from ops_mail.handlers.answers import Discard, Done, Permanent, RetryLater, Write
from ops_mail.handlers.own_writes import WrongWritesError, checked_writes
from ops_mail.settings import redact
from ops_mail.settings.redaction import redact_head

RESULT_BYTES = 64 * 1024
RESULT_LEVELS = 30
"""MariaDB takes JSON with up to 31 levels of arrays and objects for JSON, MySQL 100, Python's own limit differs."""
_FAR_TOO_LONG = 16 * RESULT_BYTES
ERROR_CHARS = 4000
_TEXT_CHARS = 64 * 1024
_FRAMES = 4
_TYPE_CHARS = 80
_NOTE_CHARS = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """One attempt's end as the handler told it. `result` is plain JSON; `error` holds no secret.

    A success has an `error` when its result could not be kept: it says so and why.
    """

    kind: EndKind
    result: Any = None
    error: str | None = None
    retry_after_seconds: float | None = None
    pause_all: bool = False  # until then no other mail either
    writes: tuple[Write, ...] = ()


class GivenUp(BaseException):
    """The attempt was given up while the handler was still running. No `except Exception` of a handler holds it up."""


def answer_of_return(value: object) -> Answer:
    """The answer of a handler that returned. What it has done is done, so even a useless value is a success."""
    writes: tuple[Write, ...] = ()
    if isinstance(value, Done):
        try:
            writes = checked_writes(value.writes)
        except Exception as error:  # noqa: BLE001 - as below
            text = str(error) if isinstance(error, WrongWritesError) else f"Done.writes: {_one_line(error)}"
            return Answer(EndKind.FAILED, error=redact_head(scrub(text), ERROR_CHARS))
    kept = value.result if isinstance(value, Done) else value
    if kept is None:
        return Answer(EndKind.SUCCEEDED, writes=writes)
    kind = scrub(type(kept).__qualname__)[:_TYPE_CHARS]
    if _is_far_too_long(kept):
        note = f"the result ({kind}) was not kept, it is too long: at most {RESULT_BYTES} bytes of JSON"
        return Answer(EndKind.SUCCEEDED, error=note, writes=writes)
    try:
        text = json.dumps(kept, allow_nan=False)
        result = _scrubbed(json.loads(text), RESULT_LEVELS) if len(text) <= RESULT_BYTES else None
    except Exception as error:  # noqa: BLE001 - a class of the handler's own may do anything while it is read
        note = redact(scrub(f"the result ({kind}) was not kept, it is no JSON: {_one_line(error)}"))
        return Answer(EndKind.SUCCEEDED, error=note[:_NOTE_CHARS], writes=writes)
    if len(text) > RESULT_BYTES:
        note = f"the result ({kind}) was not kept, it is too long: {len(text)} bytes of JSON, at most {RESULT_BYTES}"
        return Answer(EndKind.SUCCEEDED, error=note, writes=writes)
    return Answer(EndKind.SUCCEEDED, result=result, writes=writes)


def _is_far_too_long(value: object) -> bool:
    """Making JSON of 200 MB would hold the whole interpreter up for a long time, only to throw it away."""
    room = _FAR_TOO_LONG
    waiting: list[object] = [value]
    while waiting and room > 0:
        one = waiting.pop()
        room -= len(one) if type(one) is str else 1
        if type(one) is dict and len(one) < room:
            waiting += [*one.keys(), *one.values()]
        elif (type(one) is list or type(one) is tuple) and len(one) < room:
            waiting += one
        elif type(one) in (dict, list, tuple):
            return True
    return room <= 0


def answer_of_error(error: BaseException) -> Answer:
    """The answer of a handler that raised. Never raises itself: without an answer nobody would learn of the end."""
    text = _described(error)
    if isinstance(error, Discard):
        return Answer(EndKind.DISCARDED, error=redact_head(scrub(_text_of(error)), ERROR_CHARS) or None)
    if isinstance(error, Permanent):
        return Answer(EndKind.PERMANENT, error=text)
    if isinstance(error, RetryLater):
        seconds, pause_all = _wish_of(error)
        return Answer(EndKind.FAILED, error=text, retry_after_seconds=seconds, pause_all=pause_all)
    if isinstance(error, GivenUp):
        return Answer(EndKind.INTERRUPTED, error="given up")
    return Answer(EndKind.FAILED, error=text)


def _wish_of(error: RetryLater) -> tuple[float | None, bool]:
    """When to try again, as far as it can be told: `seconds` may be None, a word, too large or not there at all."""
    try:
        seconds = float(error.seconds)
        pause_all = bool(error.pause_all)
    except BaseException:  # noqa: BLE001 - a class of the handler's own may do anything
        return None, False
    return (None, False) if math.isnan(seconds) else (max(0.0, seconds), pause_all)


def _described(error: BaseException) -> str:
    """Type, text and the last places in the code, without the values of variables, bounded, without secrets."""
    frames = traceback.extract_tb(error.__traceback__, limit=-_FRAMES)
    places = "".join(f"\n  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    head = redact_head(scrub(_one_line(error)), ERROR_CHARS - 1000)
    return (head + scrub(places))[:ERROR_CHARS]


def _one_line(error: BaseException) -> str:
    text = _text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _text_of(error: BaseException) -> str:
    """Its beginning: one that is 50 MB long would hold the interpreter up while it is looked through."""
    try:
        return str(error)[:_TEXT_CHARS]
    except BaseException as broken:  # noqa: BLE001 - a handler's own exception class may do anything in __str__
        return f"(its text cannot be had: {type(broken).__name__})"


def _scrubbed(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, (list, dict)) and levels == 0:
        raise ValueError(f"more than {RESULT_LEVELS} levels of lists and objects")
    if isinstance(value, list):
        return [_scrubbed(one, levels - 1) for one in value]
    if isinstance(value, dict):
        return {scrub(key): _scrubbed(one, levels - 1) for key, one in value.items()}
    return value
