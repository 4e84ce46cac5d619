"""Text from outside on its way to a terminal or into a line of JSON."""

from __future__ import annotations

import json
import re
import sys

# C0 and C1 controls, DEL, separators of lines, marks that turn text around, and undecodable bytes.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LINE_END_OR_TAB = re.compile("[\t\n]")


def printable(text: str, *, lines: bool = False) -> str:
    """`text` as it may be shown: nothing in it can move the cursor, forge a line or set the terminal's title.

    Line ends and tabs stay with `lines`.
    """
    shown = _UNPRINTABLE.sub(_escaped, text)
    return shown if lines else _LINE_END_OR_TAB.sub(_escaped, shown)


def json_line(value: object) -> bytes:
    """One line of JSON, UTF-8, readable for people too; readers that split at Unicode's line ends see one line."""
    text = json.dumps(value, ensure_ascii=False)
    # All of these stand in strings alone, where \uXXXX means the same; json.dumps itself has escaped C0.
    return _UNPRINTABLE.sub(_escaped, text).encode("utf-8") + b"\n"


def write_json(value: object) -> None:
    """`value` as one line on standard output."""
    sys.stdout.buffer.write(json_line(value))
    sys.stdout.buffer.flush()


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
