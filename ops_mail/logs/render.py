"""From a plain event to the text that is written: JSON for machines, columns for people.

A value comes from outside as often as not (a mail's sender, a server's answer): whatever it holds, it cannot end the
line, start a false one or move a terminal's cursor.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import structlog

from ops_mail.logs.plain import PlainEvent

_FIRST = ("timestamp", "level", "logger", "event")
# C0 and C1 controls, DEL, line and paragraph separators, and the marks that turn the direction of text around.
_HOSTILE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_HOSTILE_BUT_LINE_ENDS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Told in the first line after start; on every line they would only widen it for people.
_NOT_FOR_PEOPLE = ("instance", "role")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: timestamp, level, logger and event first."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record whose `msg` is a plain event."""
        event = _event(record)
        ordered = {key: event[key] for key in _FIRST if key in event} | event
        # json.dumps escapes C0 itself; the others stand in strings alone, where \uXXXX means the same.
        return _HOSTILE.sub(_escaped, json.dumps(ordered, ensure_ascii=False))


class ConsoleFormatter(logging.Formatter):
    """Aligned columns; a traceback follows indented, so that its text cannot look like another event."""

    def __init__(self, *, colors: bool) -> None:
        super().__init__()
        self._render = structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=28, sort_keys=False)

    def format(self, record: logging.LogRecord) -> str:
        """The lines of a record whose `msg` is a plain event."""
        event = {key: value for key, value in _event(record).items() if key not in _NOT_FOR_PEOPLE}
        exception = event.pop("exception", None)
        line = str(self._render(None, "", {key: _one_line(value) for key, value in event.items()}))
        if exception is None:
            return line
        traceback = _HOSTILE_BUT_LINE_ENDS.sub(_escaped, str(exception)).strip("\n")
        return line + "\n    " + traceback.replace("\n", "\n    ")


def _event(record: logging.LogRecord) -> PlainEvent:
    return record.msg if isinstance(record.msg, dict) else {"event": record.getMessage()}


def _one_line(value: Any) -> Any:
    if isinstance(value, str):
        return _HOSTILE.sub(_escaped, value)
    if isinstance(value, (dict, list)):
        return _HOSTILE.sub(_escaped, json.dumps(value, ensure_ascii=False))
    return value


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
