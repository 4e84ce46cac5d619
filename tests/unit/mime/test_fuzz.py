"""Any bytes give a record. The long run is a command: `python -m tests.bench.mime_fuzz --minutes 10`."""

from __future__ import annotations

import base64
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ops_mail.mime import parse_mail
from tests.bench.mime_fuzz import check, corpus, damaged

QUICK = settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)

tokens = st.sampled_from(
    [
        b"From: ", b"To: ", b"Subject: ", b"Date: ", b"Content-Type: ", b"Content-Disposition: ", b"\r\n", b"\n",
        b"\r", b" ", b"multipart/mixed", b"multipart/alternative", b"multipart/digest", b"message/rfc822",
        b"text/plain", b"text/html", b"; boundary=b", b"; boundary=", b"; charset=", b"utf-8", b"gb2312", b"utf-7",
        b"iso-2022-jp", b"utf-16", b"--b", b"--", b"--b--", b"=?utf-8?B?", b"=?gbk?Q?", b"?=", b"=E4=BD=A0", b"5L2g",
        b"<", b">", b"@", b",", b";", b":", b'"', b"\\", b"(", b")", b"Content-Transfer-Encoding: base64",
        b"Content-Transfer-Encoding: quoted-printable", b"=\n", b"=", b"QUJD", b"; filename*0*=", b"utf-8''", b"%E4",
        b"; name=", b"begin 644 a\n", b"#0V%T\n", b"end\n", b"<p>", b"<!--", b"&#", b"&amp;", b"<a href='",
        b"; format=flowed", b"Mon, 6 May 2024 10:00:00 +0800", b"99", b"\x1b$B", b"\xc4\xe3", b"\xff", b"\0", b"a.b",
    ]
)  # fmt: skip


@QUICK
@given(st.binary(max_size=3000))
def test_any_bytes(raw: bytes) -> None:
    check(raw)


@QUICK
@given(st.lists(tokens, max_size=120).map(b"".join))
def test_any_sequence_of_pieces_of_mails(raw: bytes) -> None:
    check(raw)


@QUICK
@given(st.text(max_size=200), st.sampled_from(["utf-8", "utf-16", "gb18030"]))
def test_any_text_comes_back(text: str, charset: str) -> None:
    sent = text.replace("\r", "").replace("\0", "").lstrip("\ufeff")
    encoded = base64.encodebytes(sent.encode(charset))
    head = f"Content-Type: text/plain; charset={charset}\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    mail = check(head.encode() + encoded)
    assert (mail.text_body or "").rstrip("\n") == sent.rstrip("\n")


def test_damaged_mails_of_the_corpus() -> None:
    mails = [raw for raw in corpus() if len(raw) < 30_000]
    dice = random.Random(20240506)
    for _ in range(600):
        check(damaged(dice.choice(mails), dice.choice(mails), dice))


def test_the_same_bytes_give_the_same_record() -> None:
    for raw in corpus()[::40]:
        assert parse_mail(raw) == parse_mail(raw)
