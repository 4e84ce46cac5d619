"""Text from outside cannot act on a terminal or break a line."""

from __future__ import annotations

import json

from ops_mail.cli.terminal import json_line, printable

HOSTILE = "a\r\nb\tc\x1b[2J\x9b31m\u2028\u202egnp.exe\udcff\x00"


def test_controls_and_marks_are_shown_instead_of_obeyed() -> None:
    shown = "a\\u000d\\u000ab\\u0009c\\u001b[2J\\u009b31m\\u2028\\u202egnp.exe\\udcff\\u0000"
    assert printable(HOSTILE) == shown


def test_line_ends_and_tabs_may_stay() -> None:
    assert printable("a\n\tb\x07", lines=True) == "a\n\tb\\u0007"


def test_a_json_line_is_one_line_for_every_reader_and_keeps_the_value() -> None:
    line = json_line({"text": HOSTILE, "name": "Grüße 你好 🎉"})
    assert json.loads(line) == {"text": HOSTILE, "name": "Grüße 你好 🎉"}
    assert len(line.decode("utf-8").splitlines()) == 1
    assert "Grüße 你好 🎉".encode() in line
