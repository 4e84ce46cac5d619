from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_mail.imap.wire import MAX_LINE_BYTES, Response, ResponseReader, WireError


def read(chunks: list[bytes], literal_limit: int = 1 << 20) -> list[Response]:
    reader = ResponseReader()
    reader.literal_limit = literal_limit
    found = []
    for chunk in chunks:
        reader.push(chunk)
        while (response := reader.next()) is not None:
            found.append(response)
    return found


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(ends)]


lines = st.binary(max_size=30).map(lambda raw: raw.replace(b"\r", b"r").replace(b"\n", b"n").replace(b"}", b")"))
literals = st.binary(max_size=60)


@st.composite
def responses(draw: st.DrawFn) -> Response:
    first = b"* 1 X " + draw(lines)
    texts, contents = [first], []
    for content in draw(st.lists(literals, max_size=3)):
        texts[-1] += b"{%d}" % len(content)
        contents.append(content)
        texts.append(draw(lines))
    return Response(tuple(texts), tuple(contents))


def wire(response: Response) -> bytes:
    parts = [response.texts[0], b"\r\n"]
    for content, text in zip(response.literals, response.texts[1:], strict=True):
        parts += [content or b"", text, b"\r\n"]
    return b"".join(parts)


@given(st.lists(responses(), max_size=6), st.lists(st.integers(0, 10_000), max_size=12))
def test_any_chunking_gives_the_same_responses(expected: list[Response], places: list[int]) -> None:
    data = b"".join(map(wire, expected))
    assert read(cut(data, places)) == expected


@given(st.lists(responses(), min_size=1, max_size=4))
def test_one_byte_at_a_time_gives_the_same_responses(expected: list[Response]) -> None:
    data = b"".join(map(wire, expected))
    assert read([data[i : i + 1] for i in range(len(data))]) == expected


@given(st.lists(responses(), max_size=5), st.integers(0, 40), st.lists(st.integers(0, 10_000), max_size=12))
def test_a_literal_over_the_limit_is_dropped_and_the_rest_stays_in_step(
    sent: list[Response], limit: int, places: list[int]
) -> None:
    expected = [
        Response(r.texts, tuple(None if c is not None and len(c) > limit else c for c in r.literals)) for r in sent
    ]
    assert read(cut(b"".join(map(wire, sent)), places), limit) == expected


def test_a_huge_literal_that_is_dropped_does_not_fill_the_buffer() -> None:
    reader = ResponseReader()
    reader.literal_limit = 10
    reader.push(b"* 1 FETCH (BODY[] {100000000}\r\n")
    assert reader.next() is None
    for _ in range(100):
        reader.push(b"x" * 1_000_000)
        assert reader.next() is None
        assert len(reader._buffer) <= 1
    reader.push(b")\r\n")
    assert reader.next() == Response((b"* 1 FETCH (BODY[] {100000000}", b")"), (None,))


def test_ten_thousand_lines_and_literals_in_one_chunk() -> None:
    data = b"".join(b"* %d FETCH (BODY[] {2}\r\nab)\r\n* %d EXPUNGE\r\n" % (i, i) for i in range(10_000))
    assert len(read([data])) == 20_000


@pytest.mark.parametrize(
    "line",
    [b"* OK come again {5}", b"* NO {3}", b"* BYE {9}", b"* BAD {1}", b"* PREAUTH {4}", b"A1 OK {5}", b"+ {7}"],
)
def test_a_text_for_people_that_ends_like_a_literal_announces_none(line: bytes) -> None:
    assert read([line + b"\r\n* 1 EXISTS\r\n"]) == [Response((line,)), Response((b"* 1 EXISTS",))]


def test_a_literal_of_no_bytes() -> None:
    assert read([b"* 1 FETCH (BODY[] {0}\r\n)\r\n"]) == [Response((b"* 1 FETCH (BODY[] {0}", b")"), (b"",))]


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(WireError):
        read([b"x" * 65536] * (MAX_LINE_BYTES // 65536 + 2))


def test_a_response_with_endless_literals_is_refused() -> None:
    with pytest.raises(WireError):
        read([b"* X {0}\r\n" + b" {0}\r\n" * 2000])


def test_is_empty_tells_whether_anything_waits() -> None:
    reader = ResponseReader()
    told = [reader.is_empty]
    for chunk in (b"* 1 EXISTS\r\n* 2", b" EXISTS\r\n", b"* X {1}\r\n", b"a\r\n"):
        reader.push(chunk)
        while reader.next() is not None:
            pass
        told.append(reader.is_empty)
    assert told == [True, False, True, False, True]
