from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_mail.imap.fetch_parser import UNKNOWN_DATE, Dropped, Fetched, internal_date, listed, parse_fetch
from ops_mail.imap.wire import Response, ResponseReader, WireError


def parse(data: bytes, literal_limit: int = 1 << 20) -> Fetched | None:
    reader = ResponseReader()
    reader.literal_limit = literal_limit
    reader.push(data)
    response = reader.next()
    assert response is not None
    return parse_fetch(response)


def test_a_listing_line() -> None:
    fetched = parse(
        b'* 12 FETCH (UID 345 RFC822.SIZE 44827 INTERNALDATE "17-Jul-1996 02:44:25 -0700" FLAGS (\\Seen $Junk))\r\n'
    )
    assert fetched is not None
    entry = listed(fetched)
    assert entry is not None
    assert (fetched.sequence, entry.uid, entry.size_bytes) == (12, 345, 44827)
    assert entry.internal_date == datetime(1996, 7, 17, 9, 44, 25, tzinfo=UTC)
    assert entry.flags == ("\\Seen", "$Junk")


@pytest.mark.parametrize(
    "line",
    [
        b"* 1 FETCH (BODY[] {5}\r\nhello UID 7)\r\n",
        b"* 1 FETCH (UID 7 BODY[] {5}\r\nhello)\r\n",
        b'* 1 fetch (uid 7 body[] "hello")\r\n',
        b"* 1 FETCH (FLAGS () UID 7 BODY[] {5}\r\nhello MODSEQ (12))\r\n",
        b"* 1 FETCH (UID 7 BODY[] ~{5}\r\nhello)\r\n",
        b"* 1 FETCH (UID 7 BODY[] {5}\r\nhello )\r\n",
    ],
)
def test_the_body_is_found_wherever_its_uid_stands(line: bytes) -> None:
    fetched = parse(line)
    assert fetched is not None
    assert (fetched.uid, fetched.attributes["BODY[]"]) == (7, b"hello")


def test_nil_is_no_text() -> None:
    fetched = parse(b"* 1 FETCH (UID 7 BODY[] NIL)\r\n")
    assert fetched is not None
    assert fetched.attributes["BODY[]"] is None


def test_the_offset_of_a_piece_is_part_of_its_name() -> None:
    fetched = parse(b"* 1 FETCH (UID 7 BODY[]<1048576> {2}\r\nab)\r\n")
    assert fetched is not None
    assert fetched.attributes["BODY[]<1048576>"] == b"ab"


def test_a_dropped_literal_tells_its_size() -> None:
    fetched = parse(b"* 1 FETCH (UID 7 BODY[] {5}\r\nhello)\r\n", literal_limit=4)
    assert fetched is not None
    assert fetched.attributes["BODY[]"] == Dropped(5)


def test_nested_lists_and_escaped_quotes() -> None:
    fetched = parse(rb'* 1 FETCH (UID 7 X ("a \"b\" \\" (c NIL) ()))' + b"\r\n")
    assert fetched is not None
    assert fetched.attributes["X"] == (b'a "b" \\', (b"c", None), ())


@pytest.mark.parametrize("line", [b"* 3 EXISTS\r\n", b"* OK FETCH (\r\n", b"* LIST () NIL x\r\n", b"* 1 FETCHED (\r\n"])
def test_other_responses_are_none(line: bytes) -> None:
    assert parse(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b"* 1 FETCH (UID 7\r\n",
        b"* 1 FETCH (UID)\r\n",
        b"* 1 FETCH (UID 7 BODY[] (\r\n",
        b"* 1 FETCH (UID 7) UID 8)\r\n",
        b'* 1 FETCH (UID 7 BODY[] "hel)\r\n',
        b"* 1 FETCH ((a) UID 7)\r\n",
        b'* 1 FETCH (UID 7 X "{5}\r\nhello")\r\n',
        b"* 1 FETCH (UID 7 BODY[] {5}\r\nhello world)\r\n",
        b"* 1 FETCH (BODY[] {3}\r\nabcdef UID 7)\r\n",
    ],
)
def test_what_does_not_fit_the_grammar_is_refused(line: bytes) -> None:
    with pytest.raises(WireError):
        parse(line)


@pytest.mark.parametrize("uid", [b"0", b"4294967296", b"x", b"99999999999999999999999", b"(1)"])
def test_an_impossible_uid_is_refused(uid: bytes) -> None:
    with pytest.raises(WireError):
        parse(b"* 1 FETCH (UID " + uid + b")\r\n")


@given(st.integers(1, 2**32 - 1), st.binary(max_size=200), st.integers(0, 60), st.sampled_from([b"UID first", b"last"]))
def test_a_body_of_any_bytes_comes_back_whole(uid: int, body: bytes, at: int, order: bytes) -> None:
    content = b"BODY[] {%d}\r\n" % len(body) + body
    inner = b"UID %d %s" % (uid, content) if order == b"UID first" else b"%s UID %d" % (content, uid)
    data = b"* 1 FETCH (" + inner + b")\r\n"
    reader = ResponseReader()
    reader.push(data[:at])
    early = reader.next()
    reader.push(data[at:])
    response = early or reader.next()
    assert response is not None
    fetched = parse_fetch(response)
    assert fetched is not None
    assert (fetched.uid, fetched.attributes["BODY[]"]) == (uid, body)


@given(st.binary(max_size=80), st.lists(st.binary(max_size=20), max_size=2))
def test_garbage_is_refused_or_parsed_but_never_breaks(text: bytes, contents: list[bytes]) -> None:
    texts = [b"* 1 FETCH (" + text, *(b")" for _ in contents)]
    try:
        fetched = parse_fetch(Response(tuple(texts), tuple(contents)))
    except WireError:
        return
    assert fetched is not None
    assert fetched.sequence == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b" 7-Feb-2024 10:20:30 +0800", datetime(2024, 2, 7, 2, 20, 30, tzinfo=UTC)),
        (b"7-feb-2024 10:20:30 -0030", datetime(2024, 2, 7, 10, 50, 30, tzinfo=UTC)),
        (b"31-Dec-2016 23:59:60 +0000", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (b"", UNKNOWN_DATE),
        (b"31-Feb-2024 10:20:30 +0000", UNKNOWN_DATE),
        (b"07-Foo-2024 10:20:30 +0000", UNKNOWN_DATE),
        (b"01-Jan-0001 00:00:00 +1400", UNKNOWN_DATE),
        (b"01-Jan-2024 00:00:00 +9999", UNKNOWN_DATE),
        (b"2024-02-07T10:20:30Z", UNKNOWN_DATE),
    ],
)
def test_internal_dates_are_utc_and_bad_ones_do_not_raise(text: bytes, expected: datetime) -> None:
    assert internal_date(text) == expected


@given(st.binary(max_size=40))
def test_no_date_text_raises(text: bytes) -> None:
    assert internal_date(text).tzinfo is UTC


def test_a_line_that_lacks_the_size_is_no_listing() -> None:
    fetched = parse(b"* 1 FETCH (UID 7 FLAGS (\\Seen))\r\n")
    assert fetched is not None
    assert listed(fetched) is None
