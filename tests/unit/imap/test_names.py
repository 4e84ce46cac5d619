from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_mail.core.ids import Uid
from ops_mail.imap.names import MAX_SET_CHARS, decode_folder, encode_folder, folder_argument, quoted, uid_sets


@pytest.mark.parametrize(
    ("name", "coded"),
    [
        ("INBOX", "INBOX"),
        ("Entwürfe", "Entw&APw-rfe"),
        ("A&B", "A&-B"),
        ("台北", "&U,BTFw-"),
        ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),  # RFC 3501 section 5.1.3
        ("收件箱/工作", "&ZTZO9nux-/&XeVPXA-"),
        ("📥", "&2D3c5Q-"),
        ("", ""),
    ],
)
def test_folder_names_in_modified_utf7(name: str, coded: str) -> None:
    assert encode_folder(name) == coded
    assert decode_folder(coded) == name


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_every_folder_name_survives_the_way_there_and_back(name: str) -> None:
    coded = encode_folder(name)
    assert coded.isascii()
    assert all(" " <= character <= "~" for character in coded)
    assert decode_folder(coded) == name


@pytest.mark.parametrize("coded", ["&", "&A", "&ZZ", "&!!!!-", "&A-"])
def test_a_malformed_name_is_shown_as_it_is(coded: str) -> None:
    assert decode_folder(coded) == coded


def test_quotes_and_backslashes_are_escaped() -> None:
    assert quoted('a"b\\c') == r'"a\"b\\c"'
    assert folder_argument('Kund"en & ü') == r'"Kund\"en &- &APw-"'


@pytest.mark.parametrize("text", ["a\rb", "a\nb", "a\0b"])
def test_what_would_end_the_command_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NUL, CR and LF"):
        quoted(text)


def test_uids_become_ranges() -> None:
    assert list(uid_sets(map(Uid, [9, 4, 5, 6, 1, 4]))) == ["1,4:6,9"]
    assert list(uid_sets([])) == []


@given(st.sets(st.integers(1, 5000).map(Uid), max_size=800))
def test_sets_hold_exactly_the_uids_in_lines_of_bounded_length(uids: set[Uid]) -> None:
    found: list[int] = []
    for text in uid_sets(uids):
        assert len(text) <= MAX_SET_CHARS + 20
        for piece in text.split(","):
            first, _, last = piece.partition(":")
            found += range(int(first), int(last or first) + 1)
    assert found == sorted(uids)
