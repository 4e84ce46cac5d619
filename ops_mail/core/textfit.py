"""Makes values fit their columns: nothing that a strict server would refuse, nothing cut without a note.

Notes are appended to the row's `defects` as `truncated:<column>`, `surrogate:<column>` or `out_of_range:<column>`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime

_SURROGATE = re.compile("[\ud800-\udfff]")
_FIRST_YEAR = 1000  # MySQL's DATETIME starts there
JsonItem = str | list[str] | dict[str, str]
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def scrub(text: str) -> str:
    """`text` with each lone surrogate, which no database can hold, replaced by U+FFFD."""
    try:
        text.encode()  # ten times faster than the pattern, and there is hardly ever anything to find
    except UnicodeEncodeError:
        return _SURROGATE.sub(_REPLACEMENT, text)
    return text


def cut_bytes(text: str, max_bytes: int) -> str:
    """The longest start of `text` that has at most `max_bytes` in UTF-8; never half a character."""
    if len(text) * 4 <= max_bytes:
        return text
    encoded = text.encode("utf-8")
    if len(encoded) <= max_bytes:
        return text
    return encoded[: max(0, max_bytes)].decode("utf-8", "ignore")


def note(defects: list[str], code: str) -> None:
    """Adds `code` once."""
    if code not in defects:
        defects.append(code)


def fit(
    text: str | None, column: str, defects: list[str], *, max_chars: int | None = None, max_bytes: int | None = None
) -> str | None:
    """`text` as the column can hold it, at most `max_chars` characters and `max_bytes` bytes of UTF-8.

    Adds `surrogate:<column>` or `truncated:<column>` to `defects` for what had to change.
    """
    if text is None:
        return None
    clean = scrub(text)
    if clean != text:
        note(defects, f"surrogate:{column}")
    short = clean if max_chars is None else clean[:max_chars]
    if max_bytes is not None:
        short = cut_bytes(short, max_bytes)
    if len(short) != len(clean):
        note(defects, f"truncated:{column}")
    return short


def fit_json(items: Iterable[JsonItem], column: str, defects: list[str], *, max_bytes: int) -> list[JsonItem]:
    """The first `items` whose JSON text together has at most `max_bytes`; an item is text or a list or dict of texts.

    Adds `surrogate:<column>` or `truncated:<column>` to `defects` for what had to change.
    """
    kept: list[JsonItem] = []
    room = max_bytes - 2  # the brackets
    for item in items:
        clean = _scrub_item(item)
        if clean != item:
            note(defects, f"surrogate:{column}")
        room -= len(dump_json(clean).encode()) + 1
        if room < 0:
            note(defects, f"truncated:{column}")
            break
        kept.append(clean)
    return kept


def fit_time(moment: datetime | None, column: str, defects: list[str]) -> datetime | None:
    """`moment`, or None with the note `out_of_range:<column>` when the database's calendar does not reach it."""
    if moment is None:
        return None
    try:
        utc = moment.astimezone(UTC)
    except (OverflowError, ValueError):  # an offset that leaves the years 1 to 9999
        utc = None
    if utc is None or utc.year < _FIRST_YEAR:
        note(defects, f"out_of_range:{column}")
        return None
    return utc


def _scrub_item(item: JsonItem) -> JsonItem:
    if isinstance(item, str):
        return scrub(item)
    if isinstance(item, dict):
        return {scrub(key): scrub(value) for key, value in item.items()}
    return [scrub(value) for value in item]


def dump_json(value: object) -> str:
    """JSON text as every server stores it: no lone surrogate, no NaN. Raises ValueError for what is no JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
