"""The tree of a mail: RFC 2046, and what is left of it after a few hops and buggy senders."""

from __future__ import annotations

import base64

import pytest

from ops_mail.core.mail import ParsedMail
from ops_mail.mime import parse_header_only, parse_mail


def names(mail: ParsedMail) -> list[str | None]:
    return [item.filename for item in mail.attachments]


TWO_PARTS = (
    b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\npreamble\n--b\n\nhello\n--b\n"
    b"Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\n\nQUJD\n--b--\nepilogue\n"
)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_every_line_break(newline: bytes) -> None:
    mail = parse_mail(TWO_PARTS.replace(b"\n", newline))
    assert (mail.subject, mail.text_body) == ("x", "hello\n")
    assert [(item.filename, item.content) for item in mail.attachments] == [("a.pdf", b"ABC")]


def test_line_break_before_a_boundary_belongs_to_the_boundary() -> None:
    # RFC 2046 section 5.1.1: the first part ends without, the second with a line break.
    body = b"--b\n\nno break\n--b\nContent-Type: application/x\n\nbreak\n\n--b--\n"
    mail = parse_mail(b"Content-Type: multipart/mixed; boundary=b\n\n" + body)
    assert mail.attachments[0].content == b"break\n"


@pytest.mark.parametrize(
    ("raw", "defect"),
    [
        (TWO_PARTS.replace(b"--b--\nepilogue\n", b""), "no_end_boundary"),
        (TWO_PARTS.replace(b"boundary=b", b"boundary=other"), "no_boundary"),
        (TWO_PARTS.replace(b"; boundary=b", b""), "no_boundary"),
        (
            TWO_PARTS.replace(b"--b--\nepilogue\n", b"--b--\n--b\nContent-Type: image/x; name=c\n\n1\n"),
            "part_after_end",
        ),
    ],
)
def test_boundary_that_is_missing_or_wrong(raw: bytes, defect: str) -> None:
    mail = parse_mail(raw)
    assert mail.text_body == "hello\n"
    assert "a.pdf" in names(mail)
    assert defect in mail.defects


def test_multipart_without_any_part_shows_its_text() -> None:
    mail = parse_mail(b"Content-Type: multipart/mixed; boundary=b\n\njust text\n")
    assert mail.text_body == "just text\n"
    assert "no_boundary" in mail.defects
    mail = parse_mail(b"Content-Type: multipart/mixed; boundary=b\n\njust text\n--b--\n")
    assert mail.text_body == "just text\n"
    assert "no_start_boundary" in mail.defects


def test_inner_multipart_that_is_not_closed_ends_with_its_parent() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/alternative; boundary=i\n\n"
        b"--i\n\nplain\n--i\nContent-Type: text/html\n\n<p>html\n--o\nContent-Type: image/png; name=a.png\n\nx\n--o--\n"
    )
    assert (mail.text_body, mail.html_body, names(mail)) == ("plain\n", "<p>html", ["a.png"])
    assert mail.attachments[0].content == b"x"


def test_boundary_that_begins_like_another_is_not_mistaken_for_it() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/mixed; boundary=ab\n\n--ab\nContent-Type: multipart/mixed; boundary=abc\n\n"
        b"--abc\n\none\n--abc--\n--ab\n\ntwo\n--ab--\n"
    )
    assert mail.text_body == "one\n\ntwo\n"


def test_white_space_behind_a_boundary() -> None:
    assert parse_mail(TWO_PARTS.replace(b"--b\n", b"--b  \t\n")).text_body == "hello\n"


def test_header_that_ends_without_an_empty_line() -> None:
    mail = parse_mail(b"From: a@x.org\nSubject: x\nHello Jane,\nhow are you?\n\nBye\n")
    assert (mail.subject, mail.text_body) == ("x", "Hello Jane,\nhow are you?\n\nBye\n")
    assert "no_header_end" in mail.defects


def test_part_header_that_runs_into_the_boundary() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: image/x; name=a\n--b\n\nt\n--b--\n"
    )
    assert (mail.text_body, names(mail)) == ("t\n", ["a"])


def test_junk_between_header_fields_is_passed_over() -> None:
    mail = parse_mail(b"Subject: x\nthis is no field\nFrom: a@x.org\nX-Odd Name: 1\nTo: b@x.org\n\nbody\n")
    assert (mail.subject, mail.from_addr, mail.text_body) == ("x", "a@x.org", "body\n")
    assert mail.to_addrs[0].addr == "b@x.org"
    assert "header_junk" in mail.defects


@pytest.mark.parametrize(
    "before", [b"From MAILER-DAEMON Fri Jul  8 12:08:34 2011\n", b">From x\n", b"\n\n", b"\xef\xbb\xbf", b"  "]
)
def test_what_stands_before_the_first_field(before: bytes) -> None:
    mail = parse_mail(before + b"Subject: x\nFrom: a@x.org\n\nbody\n")
    assert (mail.subject, mail.from_addr, mail.text_body) == ("x", "a@x.org", "body\n")


def test_obsolete_space_before_the_colon_and_empty_continuation_lines() -> None:
    mail = parse_mail(b"Subject \t: a\r\n   \r\n b\r\nFrom : x@y.z\r\n\r\nbody")
    assert " ".join(mail.subject.split()) == "a b"
    assert mail.from_addr == "x@y.z"


def test_text_without_any_header_is_body() -> None:
    mail = parse_mail(b"hello world\nsecond line\n")
    assert mail.text_body == "hello world\nsecond line\n"
    assert "no_header" in mail.defects


@pytest.mark.parametrize("raw", [b"", b"\n", b"\r\n\r\n", b":", b"\0", b"\xff" * 100, b"--", b"=?", b"From:"])
def test_nearly_nothing(raw: bytes) -> None:
    assert "parser_failed" not in parse_mail(raw).defects


FORWARDED = b"From: inner@x.org\nSubject: inner\n\ninner text\n"


def test_forwarded_message_is_an_attachment_and_its_text_is_shown() -> None:
    mail = parse_mail(
        b"Subject: outer\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nouter text\n--b\n"
        b"Content-Type: message/rfc822; name=fwd.eml\n\n" + FORWARDED + b"--b--\n"
    )
    assert (mail.subject, mail.text_body) == ("outer", "outer text\n\ninner text\n")
    assert [(item.filename, item.content_type) for item in mail.attachments] == [("fwd.eml", "message/rfc822")]
    assert mail.attachments[0].content == FORWARDED.removesuffix(b"\n")


def test_text_of_a_message_that_is_marked_as_attachment_is_not_shown_but_its_files_are_listed() -> None:
    inner = (
        b"Content-Type: multipart/mixed; boundary=i\n\n--i\n\nsecret\n--i\nContent-Type: image/x; name=p\n\n1\n--i--\n"
    )
    mail = parse_mail(
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nouter\n--b\nContent-Type: message/rfc822\n"
        b"Content-Disposition: attachment; filename=m.eml\n\n" + inner + b"\n--b--\n"
    )
    assert mail.text_body == "outer\n"
    assert names(mail) == ["m.eml", "p"]


def test_message_that_is_base64_encoded_is_opened_all_the_same() -> None:
    mail = parse_mail(
        b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n" + base64.encodebytes(FORWARDED)
    )
    assert mail.text_body == "inner text\n"
    assert mail.attachments[0].content == FORWARDED


def test_digest_parts_are_messages() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/digest; boundary=b\n\n--b\n\n" + FORWARDED + b"--b\n\n" + FORWARDED + b"--b--\n"
    )
    assert [item.content_type for item in mail.attachments] == ["message/rfc822"] * 2
    assert mail.text_body == "inner text\n\ninner text\n"


def test_delivery_report_keeps_its_parts() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n--b\n\nnot delivered\n--b\n"
        b"Content-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nAction: failed\n\n--b\n"
        b"Content-Type: text/rfc822-headers\n\nSubject: lost\n--b--\n"
    )
    assert mail.text_body == "not delivered\n"
    assert [item.content_type for item in mail.attachments] == ["message/delivery-status", "text/rfc822-headers"]
    assert mail.attachments[0].content == b"Reporting-MTA: dns; x\n\nAction: failed\n"


@pytest.mark.parametrize(
    "signature", [b"application/pgp-signature; name=signature.asc", b"application/pkcs7-signature; name=smime.p7s"]
)
def test_signature_is_kept_beside_the_signed_text(signature: bytes) -> None:
    mail = parse_mail(
        b"Content-Type: multipart/signed; boundary=b\n\n--b\nContent-Type: text/plain\n\nsigned\n--b\nContent-Type: "
        + signature
        + b"\n\nsig\n--b--\n"
    )
    assert mail.text_body == "signed\n"
    assert names(mail) == [signature.split(b"name=")[1].decode()]


def test_encrypted_mail_keeps_both_parts() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/encrypted; boundary=b\n\n--b\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n"
        b"--b\nContent-Type: application/octet-stream; name=encrypted.asc\n\n-----BEGIN\n--b--\n"
    )
    assert [item.content_type for item in mail.attachments] == ["application/pgp-encrypted", "application/octet-stream"]


def test_invitation_is_an_attachment_beside_its_text() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/alternative; boundary=b\n\n--b\n\nmeeting\n--b\nContent-Type: text/html\n\n<b>meeting"
        b"\n--b\nContent-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR\n--b--\n"
    )
    assert (mail.text_body, mail.html_body) == ("meeting\n", "<b>meeting")
    assert [item.content_type for item in mail.attachments] == ["text/calendar"]


def test_image_inside_of_html_is_listed_with_its_content_id() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n<img src='cid:a@b'>\n--b\n"
        b"Content-Type: image/png\nContent-ID: <a@b>\nContent-Disposition: inline\n\nx\n--b--\n"
    )
    (image,) = mail.attachments
    assert (image.content_id, image.disposition, image.filename) == ("a@b", "inline", None)


@pytest.mark.parametrize("start", [b'; start="<root@x>"', b""])
def test_root_of_related_parts_that_does_not_stand_first(start: bytes) -> None:
    mail = parse_mail(
        b"Content-Type: multipart/related; boundary=b"
        + start
        + b"\n\n--b\nContent-Type: image/png\nContent-ID: <a@b>\n\nx\n"
        b"--b\nContent-Type: text/html\nContent-ID: <root@x>\n\n<p>root\n--b--\n"
    )
    assert mail.html_body == "<p>root"
    assert [item.content_type for item in mail.attachments] == ["image/png"]


def test_header_of_an_oversize_mail_alone() -> None:
    mail = parse_header_only(
        b"From: A <a@x.org>\r\nSubject: =?utf-8?Q?=C3=A4?=\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    )
    assert (mail.subject, mail.from_addr, mail.text_body, mail.attachments) == ("ä", "a@x.org", None, ())
    assert parse_header_only(b"Subject: cut o").subject == "cut o"
    assert parse_header_only(b"").subject == ""
