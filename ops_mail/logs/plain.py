"""Makes what is logged plain: strings, numbers, lists and dicts of bounded size, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ops_mail.settings.redaction import MASK, redact_head, redact_tail

PlainEvent = dict[str, Any]

# Bounds, so that a queue of events stays small whatever is logged (promise P6).
_TEXT_LIMIT = 4 * 1024
_TRACEBACK_LIMIT = 32 * 1024
_ITEMS_LIMIT = 100
_DEPTH_LIMIT = 6

# The second line behind registered secrets: names and places where one is to be expected.
_SECRET_KEY = re.compile(r"passw|passphrase|secret|token|authorization|credential|api_?key|cookie", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(\w://[^\s:/@]*:)[^\s/@]+@")
# A lone surrogate (undecodable bytes of a mail) cannot be written as UTF-8.
_SURROGATE = re.compile("[\ud800-\udfff]")


def plain_event(event: Mapping[str, Any]) -> PlainEvent:
    """`event` as data that any thread can render later: nothing in it is shared with the caller."""
    return {_key(str(key)): _plain_item(str(key), value, _DEPTH_LIMIT) for key, value in event.items()}


def _plain_item(key: str, value: Any, depth: int) -> Any:
    if isinstance(value, str) and _is_secret(key):
        return MASK if value else value
    if key == "exception":
        return _tail(str(value))
    return _plain(value, depth)


@lru_cache(maxsize=1024)
def _is_secret(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


@lru_cache(maxsize=1024)
def _key(key: str) -> str:
    return _text(key, 200)


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        # An enum of ints is told by its name, like an enum of strings by its value.
        return value if type(value) in (bool, int, float, type(None)) else _text(value)
    if isinstance(value, Mapping) and depth:
        return {_text(key, 200): _plain_item(str(key), item, depth - 1) for key, item in _some(value.items())}
    if isinstance(value, (list, tuple, set, frozenset)) and depth:
        return [_plain(item, depth - 1) for item in _some(value)]
    return _text(value)


def _some(items: Any) -> list[Any]:
    listed = list(items)
    return listed[:_ITEMS_LIMIT]


def _text(value: Any, limit: int = _TEXT_LIMIT) -> str:
    text = value if type(value) is str else _as_text(value)
    head = _clean(redact_head(text, limit))
    return head if len(text) <= limit else f"{head}… ({len(text)} characters)"


def _tail(text: str) -> str:
    """The end of a traceback tells more than its beginning."""
    tail = _clean(redact_tail(text, _TRACEBACK_LIMIT))
    return tail if len(text) <= _TRACEBACK_LIMIT else f"…{tail}"


def _as_text(value: Any) -> str:
    try:
        return repr(value) if isinstance(value, (bytes, bytearray, memoryview)) else str(value)
    except Exception as error:  # noqa: BLE001 - a value that cannot be told must not take its log line away
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def _clean(text: str) -> str:
    return _SURROGATE.sub("\ufffd", _URL_PASSWORD.sub(rf"\1{MASK}@", text))
