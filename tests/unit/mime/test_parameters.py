"""Parameters of Content-Type and Content-Disposition: RFC 2231, RFC 2047 in them, raw bytes, and sloppy quoting."""

from __future__ import annotations

import pytest

from ops_mail.core.mail import Attachment
from ops_mail.mime import parse_mail


def attached(disposition: bytes = b"attachment", content_type: bytes = b"application/pdf") -> Attachment:
    mail = parse_mail(b"Content-Type: " + content_type + b"\r\nContent-Disposition: " + disposition + b"\r\n\r\nx")
    (attachment,) = mail.attachments
    return attachment


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        # RFC 2231 sections 3 and 4.
        (b"filename*=us-ascii'en-us'This%20is%20%2A%2A%2Afun%2A%2A%2A.txt", "This is ***fun***.txt"),
        (
            b"filename*0*=us-ascii'en'It%20is%20;\r\n filename*1*=%2A%2A%2Afun%2A%2A%2A%20;\r\n filename*2=\"it's!\"",
            "It is ***fun*** it's!",
        ),
        (b"filename*0=long; filename*1=name; filename*2=.pdf", "longname.pdf"),
        (b"filename*2=.pdf; filename*0=long; filename*1=name", "longname.pdf"),
        (b"filename*1*=%E8%AF%95.pdf; filename*0*=UTF-8''%E6%B5%8B", "测试.pdf"),
        (b"filename*=gbk''%B2%E2%CA%D4.pdf", "测试.pdf"),
        (b"filename*=%E6%B5%8B%E8%AF%95.pdf", "测试.pdf"),  # charset and language forgotten
        (b"filename*0*=UTF-8''%E6%B5; filename*1*=%8B.pdf", "测.pdf"),  # a character split across sections
        (b"filename*0*=UTF-8''a%20b; filename*1=%20c.pdf", "a b%20c.pdf"),  # only starred sections are encoded
        (b"filename=plain.pdf; filename*=UTF-8''%E6%B5%8B.pdf", "测.pdf"),
        # RFC 2047 where RFC 2231 forbids it, and all the world does it.
        (b'filename="=?utf-8?B?5rWL6K+V?=.pdf"', "测试.pdf"),
        (b"filename==?utf-8?B?5rWL6K+VLnBkZg==?=", "测试.pdf"),
        (b'filename="=?utf-8?B?5rWL?=\r\n =?utf-8?B?6K+VLnBkZg==?="', "测试.pdf"),
        (b"filename*0==?utf-8?B?5rWL; filename*1=6K+VLnBkZg==?=", "测试.pdf"),
        # Raw bytes.
        (b'filename="' + "测试.pdf".encode() + b'"', "测试.pdf"),
        (b'filename="' + "关于预算的通知.pdf".encode("gbk") + b'"', "关于预算的通知.pdf"),
        (b'filename="' + "Größe.pdf".encode("latin-1") + b'"', "Größe.pdf"),
        # Quoting.
        (b'filename="a\\"b\\".pdf"', 'a"b".pdf'),
        (b"filename=my file.pdf; size=3", "my file.pdf"),
        (b'filename="my file.pdf', "my file.pdf"),
        (b'filename="the "best" file.pdf"', 'the "best" file.pdf'),
        (b'filename = "a.pdf"', "a.pdf"),
        (b'FILENAME="a.pdf"', "a.pdf"),
        (b'filename="a;b.pdf"', "a;b.pdf"),
        (b'filename="C:\\Users\\me\\a.pdf"', "C:\\Users\\me\\a.pdf"),
        (b';;filename="a.pdf";;', "a.pdf"),
        (b'creation-date="Mon, 6 May 2024 10:00:00 +0000" filename="a.pdf"', "a.pdf"),  # the semicolon is missing
    ],
)
def test_file_name_as_sent(parameters: bytes, name: str) -> None:
    assert attached(b"attachment; " + parameters).original_filename == name


def test_name_of_the_type_serves_when_the_disposition_has_none() -> None:
    assert attached(b"attachment", b"application/pdf; name=b.pdf").filename == "b.pdf"
    assert attached(b"attachment; filename=a.pdf", b"application/pdf; name=b.pdf").filename == "a.pdf"


@pytest.mark.parametrize(
    ("sent", "safe"),
    [
        (b"../../etc/passwd", "passwd"),
        (b"C:\\temp\\a.pdf", "a.pdf"),
        (b"a/b\\c.pdf", "c.pdf"),
        (b"..", None),
        (b"/", None),
        (b"con.txt", "_con.txt"),
        (b"a<b>|?.pdf", "a_b___.pdf"),
        (b"a.pdf. . ", "a.pdf"),
        (b"=?utf-8?Q?a=0D=0Ab.pdf?=", "a__b.pdf"),
        (b"=?utf-8?Q?a=00b.pdf?=", "ab.pdf"),
        ("invoice\u202efdp.exe".encode(), "invoicefdp.exe"),  # the mark that shows exe.pdf
        (("测" * 200 + ".pdf").encode(), "测" * 78 + ".pdf"),  # 240 bytes at most, the extension kept
    ],
)
def test_safe_base_name(sent: bytes, safe: str | None) -> None:
    attachment = attached(b'attachment; filename="' + sent.replace(b"\\", b"\\\\") + b'"')
    assert attachment.filename == safe


@pytest.mark.parametrize(
    "content_type",
    [
        b"text/plain; charset=koi8-r",
        b'text/plain;\r\n\tcharset="koi8-r"',
        b"TEXT/PLAIN; CHARSET=KOI8-R",
        b"text/plain; charset=koi8-r (Russian)",
        b"text/plain;; charset=koi8-r;",
        b"text/plain; charset = koi8-r",
        b"text/plain; charset=koi8-r; charset=utf-8",
        b"text/plain; format=flowed charset=koi8-r".replace(b"flowed ", b'"flowed" '),
        b"text/plain, charset=koi8-r",
        b"text/plain; charset*=us-ascii'en'koi8-r",
    ],
)
def test_charset_parameter_as_written(content_type: bytes) -> None:
    mail = parse_mail(b"Content-Type: " + content_type + b"\r\n\r\n" + "Привет".encode("koi8-r"))
    assert mail.text_body == "Привет\n"


def test_boundary_in_sections() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/mixed; boundary*0*=us-ascii''ab%63; boundary*1*=def\r\n\r\n"
        b"--abcdef\r\n\r\nhello\r\n--abcdef--\r\n"
    )
    assert mail.text_body == "hello\n"
    assert mail.defects == ("no_from", "no_date")


def test_no_content_type_at_all_or_a_broken_one_is_plain_text() -> None:
    for header in (b"", b"Content-Type: text\r\n", b"Content-Type: \r\n", b"Content-Type: ;charset=utf-8\r\n"):
        assert parse_mail(b"Subject: x\r\n" + header + b"\r\nhello").text_body == "hello\n"
    assert "bad_content_type" in parse_mail(b"Content-Type: text\r\n\r\n").defects
