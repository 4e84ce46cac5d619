"""RFC 2047 as it arrives: every kind of fault that mailers make, with what a reader must see."""

from __future__ import annotations

import base64

import pytest

from ops_mail.mime import parse_mail


def subject(value: bytes) -> str:
    return parse_mail(b"Subject: " + value + b"\r\n\r\n").subject


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        # The examples of RFC 2047 section 8.
        (b"(=?ISO-8859-1?Q?a?=)", "(a)"),
        (b"(=?ISO-8859-1?Q?a?= b)", "(a b)"),
        (b"(=?ISO-8859-1?Q?a?= =?ISO-8859-1?Q?b?=)", "(ab)"),
        (b"(=?ISO-8859-1?Q?a?=  =?ISO-8859-1?Q?b?=)", "(ab)"),
        (b"(=?ISO-8859-1?Q?a?=\r\n    =?ISO-8859-1?Q?b?=)", "(ab)"),
        (b"(=?ISO-8859-1?Q?a_b?=)", "(a b)"),
        (b"(=?ISO-8859-1?Q?a?= =?ISO-8859-2?Q?_b?=)", "(a b)"),
        # RFC 2231 section 5: a language beside the charset.
        (b"=?US-ASCII*EN?Q?Keith_Moore?=", "Keith Moore"),
    ],
)
def test_examples_of_the_standard(value: bytes, shown: str) -> None:
    assert subject(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"=?utf-8?b?5rWL6K+V?=", "测试"),
        (b"=?UTF-8?q?=e6=b5=8b?=", "测"),
        (b"=?utf-8?Q?Angebot?= zum =?utf-8?Q?Mittag?=", "Angebot zum Mittag"),
        (b"Re: =?gbk?B?suLK1A==?= ok", "Re: 测试 ok"),
    ],
)
def test_case_of_labels_and_space_around_words(value: bytes, shown: str) -> None:
    assert subject(value) == shown


def test_character_split_across_adjacent_words() -> None:
    whole = "预算会议".encode()
    first, second = base64.b64encode(whole[:4]), base64.b64encode(whole[4:])
    assert subject(b"=?utf-8?B?" + first + b"?=\r\n =?UTF-8?B?" + second + b"?=") == "预算会议"
    assert subject(b"=?utf-8?Q?=E9=A2?= =?utf-8?Q?=84=E7=AE=97?=") == "预算"
    assert subject(b"=?gb2312?Q?=D4?= =?gb2312?B?pA==?=") == "预"


def test_base64_cut_in_the_middle_of_a_quantum_goes_on_in_the_next_word() -> None:
    encoded = base64.b64encode("预算会议的通知".encode())
    assert subject(b"=?utf-8?B?" + encoded[:10] + b"?= =?utf-8?B?" + encoded[10:] + b"?=") == "预算会议的通知"


@pytest.mark.parametrize("padding", [b"", b"="])
def test_missing_base64_padding(padding: bytes) -> None:
    assert subject(b"=?utf-8?B?5rWL6K+VMQ" + padding + b"?=") == "测试1"


def test_padding_inside_of_a_word() -> None:
    assert subject(b"=?utf-8?B?5rWL6K+VMQ==5rWL?=") == "测试1测"


def test_space_inside_of_a_word() -> None:
    assert subject(b"=?utf-8?Q?Gr=C3=BC=C3=9Fe aus Ulm?=") == "Grüße aus Ulm"
    assert subject(b"=?utf-8?B?5rWL 6K+V?=") == "测试"


def test_question_mark_that_should_have_been_encoded() -> None:
    assert subject(b"=?utf-8?Q?Wirklich?=20ja?=") == "Wirklich? ja"
    assert subject(b"=?utf-8?Q?Kommst du??=") == "Kommst du?"


def test_word_that_is_not_closed_is_read_to_the_end() -> None:
    mail = parse_mail(b"Subject: =?utf-8?B?5rWL6K+V\r\n\r\n")
    assert mail.subject == "测试"
    assert "bad_encoded_word" in mail.defects


def test_word_that_is_not_closed_ends_where_the_next_begins() -> None:
    assert subject(b"=?utf-8?B?5rWL =?utf-8?B?6K+V?=") == "测试"


def test_word_of_which_only_the_last_sign_is_missing() -> None:
    assert subject(b"=?utf-8?Q?abc?") == "abc"


def test_base64_in_the_alphabet_for_urls() -> None:
    assert subject(b"=?utf-8?B?Pz8_Pj4-?=") == "???>>>"


def test_raw_character_cut_by_folding() -> None:
    assert subject("测".encode()[:2] + b"\r\n " + "测".encode()[2:] + "试".encode()) == "测试"


def test_text_directly_before_and_after_a_word() -> None:
    assert subject(b"[x]=?utf-8?Q?=C3=A4?=[y]") == "[x]ä[y]"


def test_what_is_no_encoded_word_stays() -> None:
    assert subject(b"1 =? 2 and a?=b") == "1 =? 2 and a?=b"
    assert subject(b"=?x?z?abc?=") == "=?x?z?abc?="


def test_unknown_charset_label_is_noted_and_guessed() -> None:
    mail = parse_mail(b"Subject: =?x-nonsense?B?5rWL6K+V?=\r\n\r\n")
    assert mail.subject == "测试"
    assert "unknown_charset:x-nonsense" in mail.defects


def test_label_that_lies_about_utf8_content() -> None:
    mail = parse_mail(b"Subject: =?utf-8?B?" + base64.b64encode("关于预算会议的通知".encode("gbk")) + b"?=\r\n\r\n")
    assert mail.subject == "关于预算会议的通知"
    assert "wrong_charset:utf-8" in mail.defects
    mail = parse_mail(b"Subject: =?iso-8859-1?B?" + base64.b64encode("预算会议".encode()) + b"?=\r\n\r\n")
    assert mail.subject == "预算会议"


@pytest.mark.parametrize("label", [b"unknown-8bit", b"x-unknown", b"default", b""])
def test_labels_that_say_that_nothing_is_known(label: bytes) -> None:
    assert (
        subject(b"=?" + label + b"?B?" + base64.b64encode("测试邮件的主题".encode("gbk")) + b"?=") == "测试邮件的主题"
    )


def test_line_break_inside_of_a_word_cannot_forge_a_header_line() -> None:
    mail = parse_mail(b"Subject: =?utf-8?Q?a=0D=0ABcc:_x@y.z?=\r\n\r\n")
    assert mail.subject == "a Bcc: x@y.z"
    assert mail.headers == (("Subject", "a Bcc: x@y.z"),)


def test_word_inside_of_a_quoted_display_name() -> None:
    mail = parse_mail(b'From: "=?utf-8?B?5byg5LiJ?=" <zhang@example.cn>\r\n\r\n')
    assert (mail.from_name, mail.from_addr) == ("张三", "zhang@example.cn")


def test_all_headers_are_kept_in_order_with_decoded_values() -> None:
    mail = parse_mail(b"Received: from a\r\n\tby b\r\nReceived: from c\r\nX-Note: =?utf-8?Q?=C3=A4?=\r\n\r\n")
    assert mail.headers == (("Received", "from a by b"), ("Received", "from c"), ("X-Note", "ä"))
