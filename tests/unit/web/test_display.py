"""Foreign text: what is shown of it, and what never is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_mail.web.display import HIDDEN, clean, size_text, without_content


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        (None, ""),
        ("", ""),
        ("plain", "plain"),
        ("two\r\n lines\tand  blanks ", "two lines and blanks"),
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("nul\x00 bell\x07 csi\x9b", "nul\ufffd bell\ufffd csi\ufffd"),
        ("invoice\u202egnp.exe\u202c \u2066a\u2069", "invoicegnp.exe a"),
        ("zero\u200bwidth\ufeff soft\xadhyphen", "zerowidth softhyphen"),
        ("line\u2028para\u2029end", "line para end"),
        ("broken \ud83d half", "broken \ufffd half"),
        ("non\uffffcharacter", "non\ufffdcharacter"),
        ("👨\u200d👩\u200d👧 family", "👨\u200d👩\u200d👧 family"),
        ("हिन्दी क्\u200dष", "हिन्दी क्\u200dष"),
        ("عرض سعر 42", "عرض سعر 42"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),  # escaping is the template's work
    ],
)
def test_a_text_is_shown_on_one_line_without_what_acts(given_text: str | None, shown: str) -> None:
    assert clean(given_text, 100) == shown


def test_a_long_text_is_cut_and_says_so() -> None:
    assert clean("x" * 10_000, 20) == "x" * 19 + "…"
    assert clean("x" * 20, 20) == "x" * 20
    assert clean("x" * 21, 20) == "x" * 19 + "…"
    assert clean("\u200b" * 79 + "abc", 20) == "a…"  # what was not looked at may have been text


def test_marks_piled_onto_a_letter_stay_a_few() -> None:
    assert clean("z" + "\u0351" * 500 + "algo", 600) == "z" + "\u0351" * 4 + "algo"


@given(st.text(max_size=300), st.integers(min_value=2, max_value=80))
def test_nothing_that_acts_gets_through(text: str, limit: int) -> None:
    shown = clean(text, limit)
    assert len(shown) <= limit
    assert not [letter for letter in shown if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


@pytest.mark.parametrize(
    ("reason", "hidden"),
    [
        ("no order in 'Order 4711'", "no order in '[…]'"),
        ("mail from bob@example.org and <x.y+z@sub.example.co.uk>", "mail from […] and <[…]>"),
        ("ValueError('Order 4711')", "ValueError('[…]')"),
        ("KeyError: 'order_id'", "KeyError: 'order_id'"),
        ("sender Bob Builder unknown", "sender […] unknown"),
        ("", ""),
    ],
)
def test_a_reason_does_not_repeat_its_mail(reason: str, hidden: str) -> None:
    assert without_content(reason, "Order 4711", "bob@example.org", "Bob Builder") == hidden


def test_a_subject_that_was_cut_or_written_as_a_repr_is_recognised() -> None:
    subject = "The quarterly figures of\tAcme, strictly confidential"
    assert without_content(f"cannot file {subject[:30]}…", subject) == f"cannot file {HIDDEN}…"
    assert without_content(f"cannot file {subject!r}", subject) == f"cannot file '{HIDDEN}'"


def test_one_letter_of_a_subject_hides_nothing() -> None:
    assert without_content("The handler failed", "Thing that is long") == "The handler failed"
    assert without_content("handler failed", "", " ") == "handler failed"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (812, "812 B"), (1024, "1.0 KiB"), (4300, "4.2 KiB"), (26_214_400, "25 MiB"), (3 * 2**30, "3.0 GiB")],
)
def test_sizes_read_well(size: int, text: str) -> None:
    assert size_text(size) == text
