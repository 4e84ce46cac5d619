"""Address lists: RFC 5322 with its appendix of odd examples, RFC 6532, and what real senders write."""

from __future__ import annotations

import pytest

from ops_mail.core.mail import Address
from ops_mail.mime import ParseLimits, parse_mail


def to(value: bytes) -> list[tuple[str, str]]:
    return [(item.name, item.addr) for item in parse_mail(b"To: " + value + b"\r\n\r\n").to_addrs]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        # RFC 5322 appendix A.
        (b"Mary Smith <mary@example.net>", [("Mary Smith", "mary@example.net")]),
        (b'"Joe Q. Public" <john.q.public@example.com>', [("Joe Q. Public", "john.q.public@example.com")]),
        (
            b'Mary Smith <mary@x.test>, jdoe@example.org, Who? <one@y.test>, "Giant; \\"Big\\" Box" <big@example.net>',
            [
                ("Mary Smith", "mary@x.test"),
                ("", "jdoe@example.org"),
                ("Who?", "one@y.test"),
                ('Giant; "Big" Box', "big@example.net"),
            ],
        ),
        (
            b"A Group:Ed Jones <c@a.test>,joe@where.test,John <jdoe@one.test>;",
            [("Ed Jones", "c@a.test"), ("", "joe@where.test"), ("John", "jdoe@one.test")],
        ),
        (b"Undisclosed recipients:;", []),
        (b"(Empty list)(start)Hidden recipients  :(nobody(that I know))  ;", []),
        (
            b"Pete(A nice \\) chap) <pete(his account)@silly.test(his host)>",
            [("Pete", "pete@silly.test")],
        ),
        (
            b"Mary Smith <@node.test,@two.test:mary@example.net>, , jdoe@test  . example",
            [("Mary Smith", "mary@example.net"), ("", "jdoe@test.example")],
        ),
        (b"John Doe <jdoe@machine(comment).  example>", [("John Doe", "jdoe@machine.example")]),
    ],
)
def test_examples_of_the_standard(value: bytes, shown: list[tuple[str, str]]) -> None:
    assert to(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"jane@example.org (Jane Doe)", [("Jane Doe", "jane@example.org")]),
        (b"Doe, Jane <jane@example.org>", [("Doe, Jane", "jane@example.org")]),
        (b'"Doe, Jane" <jane@example.org>', [("Doe, Jane", "jane@example.org")]),
        (b'"john doe"@example.org', [("", '"john doe"@example.org')]),
        (b'<"a b"@example.org>', [("", '"a b"@example.org')]),
        (b"user@[192.0.2.1]", [("", "user@[192.0.2.1]")]),
        (b"Jane Doe jane@example.org", [("Jane Doe", "jane@example.org")]),
        (b"jane@example.org <jane@example.org>", [("jane@example.org", "jane@example.org")]),
        (b"a@x.org; b@x.org", [("", "a@x.org"), ("", "b@x.org")]),  # Outlook separates with semicolons
        (b"A <a@x.org> B <b@x.org>", [("A", "a@x.org"), ("B", "b@x.org")]),  # the comma is missing
        (b"Jane <jane@example.org", [("Jane", "jane@example.org")]),  # the bracket is missing
        (b'"Jane <jane@example.org>', [("Jane", "jane@example.org")]),  # the quote is missing
        (b"O'Neil (the) [boss] <o@x.org>", [("O'Neil [boss]", "o@x.org")]),
        (b"a@x.org b@x.org", [("", "a@x.org"), ("", "b@x.org")]),
        (b'"a@x.org"', [("", "a@x.org")]),
        (b"<a@x.org> Jane Doe", [("Jane Doe", "a@x.org")]),
        (b'"A B" <>', [("A B", "")]),
        (b"<A B C>", [("A B C", "")]),
        (b"<some words user@x.org>", [("", "user@x.org")]),
        (b"< user @ x.org >", [("", "user@x.org")]),
        (b"root", [("", "root")]),
        (b"undisclosed recipients", [("undisclosed recipients", "")]),
        (b"<mailto:jane@example.org>", [("", "jane@example.org")]),
        (b"  ,, ", []),
        (b"root, Jane <jane@example.org>", [("", "root"), ("Jane", "jane@example.org")]),
        (b"Doe, Jane, Dr. <jane@example.org>, a@x.org", [("Doe, Jane, Dr.", "jane@example.org"), ("", "a@x.org")]),
    ],
)
def test_forms_that_senders_use(value: bytes, shown: list[tuple[str, str]]) -> None:
    assert to(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"=?utf-8?B?5byg5LiJ?= <z@example.cn>", [("张三", "z@example.cn")]),
        (b"=?utf-8?Q?Doe=2C_Jane?= <j@example.org>", [("Doe, Jane", "j@example.org")]),
        (b"=?utf-8?Q?Doe, Jane?= <j@example.org>", [("Doe, Jane", "j@example.org")]),
        (b"=?utf-8?B?5byg5LiJIDx6QGV4YW1wbGUuY24+?=", [("张三", "z@example.cn")]),  # the whole address encoded
        (b"=?utf-8?Q?A?= =?utf-8?Q?B?= <a@x.org>", [("AB", "a@x.org")]),
        ("张三 <张三@例子.中国>".encode(), [("张三", "张三@例子.中国")]),  # RFC 6532
        ("Jörg <j@x.org>".encode("latin-1"), [("Jörg", "j@x.org")]),
        (b"j@x.org (=?utf-8?Q?J=C3=B6rg?=)", [("Jörg", "j@x.org")]),
    ],
)
def test_names_in_any_charset(value: bytes, shown: list[tuple[str, str]]) -> None:
    assert to(value) == shown


def test_first_usable_sender_of_several() -> None:
    mail = parse_mail(b"From: Nobody\r\nFrom: A <a@x.org>, B <b@x.org>\r\n\r\n")
    assert (mail.from_name, mail.from_addr) == ("A", "a@x.org")
    assert "repeated_field:from" in mail.defects


def test_sender_stands_in_for_a_missing_from_and_reply_to_for_both() -> None:
    mail = parse_mail(b"Sender: S <s@x.org>\r\nReply-To: r@x.org\r\n\r\n")
    assert (mail.from_name, mail.from_addr) == ("S", "s@x.org")
    assert "no_from" in mail.defects
    mail = parse_mail(b"From: Shop <>\r\nReply-To: R <r@x.org>\r\n\r\n")
    assert (mail.from_name, mail.from_addr) == ("Shop", "r@x.org")
    assert parse_mail(b"Subject: x\r\n\r\n").from_addr == ""


def test_all_to_and_cc_fields_are_read() -> None:
    mail = parse_mail(b"To: a@x.org\r\nTo: b@x.org\r\nCc: c@x.org\r\n\r\n")
    assert [item.addr for item in mail.to_addrs] == ["a@x.org", "b@x.org"]
    assert mail.cc_addrs == (Address("", "c@x.org"),)


def test_no_more_addresses_than_the_limit() -> None:
    mail = parse_mail(b"To: " + b"A B <a@x.org>, " * 3000 + b"\r\n\r\n", ParseLimits(max_addresses=1000))
    assert len(mail.to_addrs) == 1000
    assert "address_limit" in mail.defects


def test_return_path_reply_to_and_authentication_results_are_kept() -> None:
    mail = parse_mail(
        b"Return-Path: <bounce@x.org>\r\nAuthentication-Results: mx.a; spf=pass\r\n"
        b"Authentication-Results: mx.b; dkim=fail\r\nReply-To: R <r@x.org>\r\n\r\n"
    )
    assert mail.return_path == "<bounce@x.org>"
    assert mail.auth_results == "mx.a; spf=pass\nmx.b; dkim=fail"
    assert mail.reply_to == "R <r@x.org>"
