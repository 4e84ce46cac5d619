"""`text_body` and `html_body`: which parts they come from and how they read."""

from __future__ import annotations

import base64

import pytest

from ops_mail.mime import parse_mail


def shown(html: str) -> str | None:
    return parse_mail(b"Content-Type: text/html; charset=utf-8\n\n" + html.encode()).text_body


def flowed(text: bytes, extra: bytes = b"") -> str | None:
    return parse_mail(b"Content-Type: text/plain; format=flowed" + extra + b"\n\n" + text).text_body


def test_plain_and_html_of_an_alternative() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/alternative; boundary=b\n\n"
        b"--b\n\nplain\n--b\nContent-Type: text/html\n\n<p>html</p>\n--b--"
    )
    assert (mail.text_body, mail.html_body) == ("plain\n", "<p>html</p>")


def test_text_is_made_from_html_when_the_plain_part_is_empty() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/alternative; boundary=b\n\n"
        b"--b\n\n \n--b\nContent-Type: text/html\n\n<p>html</p>\n--b--"
    )
    assert mail.text_body == "html\n"


def test_html_of_apple_mail_with_a_file_in_the_middle() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/alternative; boundary=o\n\n--o\n\nplain\n--o\n"
        b"Content-Type: multipart/mixed; boundary=i\n\n--i\nContent-Type: text/html\n\n<p>one\n--i\n"
        b"Content-Type: application/pdf; name=a.pdf\n\nx\n--i\nContent-Type: text/html\n\n<p>two\n--i--\n--o--"
    )
    assert (mail.text_body, mail.html_body) == ("plain\n", "<p>one\n<p>two")
    assert [item.filename for item in mail.attachments] == ["a.pdf"]


def test_text_is_made_from_html_when_there_is_no_plain_part() -> None:
    mail = parse_mail(b"Content-Type: text/html\n\n<p>Hello</p><p>World</p>")
    assert (mail.text_body, mail.html_body) == ("Hello\n\nWorld\n", "<p>Hello</p><p>World</p>")


def test_several_inline_texts_are_shown_one_below_the_other() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b\nContent-Type: image/x\n\n1\n--b\n\ntwo\n--b\n"
        b"Content-Type: text/html\n\n<i>three</i>\n--b--"
    )
    assert mail.text_body == "one\n\ntwo\n\nthree\n"


def test_text_attachment_is_not_shown() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nbody\n--b\n"
        b"Content-Disposition: attachment; filename=a.txt\n\nfile\n--b--"
    )
    assert mail.text_body == "body\n"
    assert [(item.filename, item.content) for item in mail.attachments] == [("a.txt", b"file")]


def test_mail_without_text_has_none() -> None:
    mail = parse_mail(b"Content-Type: application/pdf\n\nx")
    assert (mail.text_body, mail.html_body) == (None, None)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h1>Title</h1><p>One<br>two</p>", "Title\n\nOne\ntwo\n"),
        ("<ul><li>a</li><li><p>b</p></li></ul>", "- a\n- b\n"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc\n"),
        ("a&nbsp;b &lt;c&gt; &eacute; &#x6d4b; &amp;amp;", "a b <c> é 测 &amp;\n"),
        ("<style>p{}</style><script>if (a<b) {}</script><title>t</title>text", "text\n"),
        ("a<!-- hidden <b> -->b", "ab\n"),
        ("a <b>bold</b>, <i>it</i>alic", "a bold, italic\n"),
        ("<pre>  a\n   b</pre>", "a\n   b\n"),
        ("line\n  wrapped\t text", "line wrapped text\n"),
        ('<div style="display: none">preview</div><p>text</p>', "text\n"),
        ('<div style="display:none"><div>x</div>preview</div>text', "text\n"),
        ('<img alt="Logo" src="x"> text', "Logo text\n"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2\n"),
        ('<a href="x>y">link</a>', "link\n"),
        ('<a href="unclosed>link</a> text', "link text\n"),
        ("<p>cut off <a href=", "cut off\n"),
        ("&#xD800; &#99999999999999999999;", "\ufffd \ufffd\n"),
        ("&#" + "9" * 6000 + ";", "\ufffd\n"),
        ("<html><body></body></html>", None),
    ],
)
def test_html_as_text(html: str, text: str | None) -> None:
    assert (shown(html) or None) == text


def test_flowed_text_is_put_together_again() -> None:
    # RFC 3676 section 4: soft breaks, space stuffing, quotes, the signature line.
    assert flowed(b"one \ntwo\nthree\n") == "one two\nthree\n"
    assert flowed(b" From me\n >not a quote\n") == "From me\n>not a quote\n"
    assert flowed(b"> a \n> b\n>> c \nd\n") == "> a b\n>> c \nd\n"
    assert flowed(b"text \n-- \nJane\n") == "text \n-- \nJane\n"
    assert flowed("测 \n试\n".encode(), b"; delsp=yes; charset=utf-8") == "测试\n"
    assert flowed(b"one \r\ntwo\r\n") == "one two\n"


@pytest.mark.parametrize(
    ("encoding", "body", "text"),
    [
        (b"quoted-printable", b"a=3D=C3=A4=\nb", "a=äb\n"),
        (b"quoted-printable", b"soft=  \nbreak", "softbreak\n"),  # space that was added on the way
        (b"quoted-printable", b"100=% = ZZ=4", "100=% = ZZ=4\n"),
        (b"Quoted-Printable ", b"=c3=a4", "ä\n"),
        (b"base64", base64.b64encode("测试".encode()), "测试\n"),
        (b"BASE64", base64.b64encode(b"abcd")[:-2], "abcd\n"),  # padding lost
        (b"base64", b"YWJj\r\n!!\r\nZGVm", "abcdef\n"),
        (b"base64", b"YQ==\nYmM=\n", "abc\n"),  # two encoded pieces, one behind the other
        (b"base64", b"YWI=\n--\nfooter of a mailing list\n", "ab\n"),
        (b"base64", b"This is no base64 at all, it is plain text that\nsays so and is shown\n", None),
        (b"base64", b"Hello", "Hello\n"),
        (b"base64", b"SGVsbG8gV29ybGQhA", "Hello World!\n"),  # one character too many
        (b"8bit", "ä".encode(), "ä\n"),
        (b'"7bit"', b"a", "a\n"),
        (b"utf-8", b"a", "a\n"),  # no encoding of that name: as it stands
        (b"x-uuencode", b"begin 644 x\n#0V%T\nend\n", "Cat\n"),
    ],
)
def test_transfer_encoding(encoding: bytes, body: bytes, text: str | None) -> None:
    raw = b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: " + encoding + b"\n\n" + body
    assert parse_mail(raw).text_body == (body.decode() if text is None else text)
