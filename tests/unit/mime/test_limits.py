"""Bounds of one mail: depth, parts, header, text and time; and work that grows no faster than the mail."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ops_mail.mime
from ops_mail.mime import ParseLimits, parse_header_only, parse_mail

HERE = str(Path(ops_mail.mime.__file__).parent)


def nested(depth: int) -> bytes:
    return (
        b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(depth)) + b"\ndeep\n"
    )


def test_depth_is_limited_and_the_rest_is_kept_as_an_attachment() -> None:
    assert parse_mail(nested(48)).text_body == "deep\n"
    mail = parse_mail(nested(5000))
    assert "depth_limit" in mail.defects
    assert b"deep" in mail.attachments[-1].content


def test_messages_within_messages_are_limited_too() -> None:
    mail = parse_mail(b"Content-Type: message/rfc822\n\n" * 5000 + b"\nx")
    assert "depth_limit" in mail.defects
    assert len(mail.attachments) <= ParseLimits().max_depth + 1


def test_number_of_parts_is_limited() -> None:
    mail = parse_mail(b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\nContent-Type: image/x\n\n1\n" * 100_000)
    assert len(mail.attachments) == ParseLimits().max_parts
    assert "part_limit" in mail.defects


def test_header_is_limited_and_the_mail_still_read() -> None:
    many = parse_mail(b"Subject: x\n" + b"X-A: b\n" * 10_000 + b"\nbody")
    assert len(many.headers) == ParseLimits().max_header_fields
    assert (many.subject, many.text_body) == ("x", "body\n")
    assert "header_limit" in many.defects
    long = parse_mail(b"Subject: x\nX-A: " + b"b" * 2_000_000 + b"\nFrom: a@x.org\n\nbody")
    assert (long.subject, long.text_body) == ("x", "body\n")
    assert "header_limit" in long.defects


def test_texts_are_limited() -> None:
    mail = parse_mail(b"\n" + b"a" * 2000, ParseLimits(max_text_chars=1000))
    assert mail.text_body == "a" * 1000
    assert "text_limit" in mail.defects
    mail = parse_mail(b"Content-Type: text/html\n\n" + b"<p>a</p>" * 1000, ParseLimits(max_html_chars=80))
    assert mail.text_body == "\n\n".join("a" * 10) + "\n"
    assert "text_limit" in mail.defects


def test_no_time_at_all_gives_an_empty_record_with_the_defect() -> None:
    mail = parse_mail(
        b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b--", ParseLimits(max_seconds=0)
    )
    assert mail.defects[-1] == "time_limit"
    assert "parser_failed" not in mail.defects
    many = parse_header_only(b"X-A: b\n" * 1000, ParseLimits(max_seconds=0))
    assert many.defects[-1] == "time_limit"


def test_what_is_known_when_the_time_is_up_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()  # each look at the clock takes a second
    monkeypatch.setattr("ops_mail.mime.notes.time.monotonic", lambda: float(next(clock)))
    part = b"--b\nContent-Type: application/x; name=a\n\n1\n"
    raw = b"Subject: x\nFrom: a@x.org\nContent-Type: multipart/mixed; boundary=b\n\n" + part * 100
    mail = parse_mail(raw, ParseLimits(max_seconds=130))
    assert (mail.subject, mail.from_addr) == ("x", "a@x.org")
    assert 0 < len(mail.attachments) < 100
    assert mail.defects[-1] == "time_limit"


def test_long_html_gives_its_text_as_far_as_time_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    monkeypatch.setattr("ops_mail.mime.notes.time.monotonic", lambda: float(next(clock)))
    mail = parse_mail(b"Subject: x\nContent-Type: text/html\n\n" + b"<p>word</p>" * 20_000, ParseLimits(max_seconds=20))
    assert mail.text_body is not None
    assert mail.text_body.startswith("word\n\nword")
    assert mail.html_body is not None
    assert mail.defects[-1] == "time_limit"


def steps(raw: bytes) -> int:
    """How many lines of the parser run for a mail: work counted, not timed."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Callable[..., Any] | None:
        nonlocal count
        if not frame.f_code.co_filename.startswith(HERE):
            return None
        if event == "line":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        mail = parse_mail(raw, ParseLimits(max_seconds=600))
    finally:
        sys.settrace(before)
    assert not {"parser_failed", "time_limit"} & set(mail.defects)
    return count


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "one long header": lambda n: b"Subject: " + b"a " * n,
    "one header folded often": lambda n: b"Subject: " + b"a\n " * n,
    "header fields": lambda n: b"X: y\n" * n,
    "junk between header fields": lambda n: b"Subject: x\n" + b"junk\nFrom: a@x.org\n" * (n // 4),
    "encoded words": lambda n: b"Subject: " + b"=?utf-8?q?=c3?= =?utf-8?q?=a4?= " * (n // 8),
    "encoded words of two charsets": lambda n: b"Subject: " + b"=?utf-8?q?a?= =?gbk?q?b?= " * (n // 8),
    "unclosed encoded words": lambda n: b"Subject: " + b"=?utf-8?q?a " * (n // 4) + b"?=",
    "addresses": lambda n: b"To: " + b"A B <a@x.org>, " * (n // 8),
    "addresses without comma": lambda n: b"To: " + b"A <a@x.org> " * (n // 8),
    "open comments": lambda n: b"To: " + b"(" * n,
    "open brackets": lambda n: b"To: " + b"<" * n,
    "open quotes": lambda n: b"To: " + b'\\"' * n + b'"',
    "at signs": lambda n: b"To: " + b"a@" * n,
    "obsolete dots": lambda n: b"To: " + b"a . " * n + b"@x",
    "words with commas": lambda n: b"To: " + b"A, " * n,
    "parameters": lambda n: b"Content-Type: text/plain" + b"; a=b" * n,
    "parameter sections": lambda n: (
        b"Content-Disposition: attachment" + b"".join(b"; filename*%d=x" % k for k in range(n))
    ),
    "boundaries": lambda n: b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * n,
    "lines that begin with dashes": lambda n: b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--\n" * n,
    "nested multiparts": nested,
    "padded base64 pieces": lambda n: b"Content-Transfer-Encoding: base64\n\n" + b"QQ==\n" * n,
    "files in the text that do not end": lambda n: b"\n" + b"begin 644 a\n#0V%T\n" * n,
    "flowed lines": lambda n: b"Content-Type: text/plain; format=flowed\n\n" + b"> a \n" * n,
    "html tags": lambda n: b"Content-Type: text/html\n\n" + b"<p>a" * n,
    "html tags cut off": lambda n: b"Content-Type: text/html\n\n" + b"<a '" * n + b'"',
    "html comments cut off": lambda n: b"Content-Type: text/html\n\n" + b"<!--" * n,
    "hidden html": lambda n: b"Content-Type: text/html\n\n" + b'<p style="display:none">' * n,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_work_grows_no_faster_than_the_mail(kind: str) -> None:
    build = HOSTILE[kind]
    small, large = steps(build(400)), steps(build(1600))
    assert large < 4.6 * small + 2000
