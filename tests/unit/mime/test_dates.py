"""Dates: RFC 5322 and its obsolete forms, other spellings, and nonsense."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ops_mail.mime import parse_mail


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("Fri, 21 Nov 1997 09:55:06 -0600", (1997, 11, 21, 15, 55, 6)),
        ("21 Nov 97 09:55:06 GMT", (1997, 11, 21, 9, 55, 6)),
        ("Fri, 21 Nov 1997 09(comment):   55  :  06 -0600", (1997, 11, 21, 15, 55, 6)),
        ("Thu, 13 Feb 1969 23:32 -0330 (Newfoundland Time)", (1969, 2, 14, 3, 2, 0)),
        ("Mon, 6 May 2024 10:00:00 +0800 (CST)", (2024, 5, 6, 2, 0, 0)),
        ("Tue, 6 May 2024 10:00:00 +0800", (2024, 5, 6, 2, 0, 0)),  # it was a Monday
        ("6 May 24 10:00 EST", (2024, 5, 6, 15, 0, 0)),
        ("Mon, 06 May 2024 10:00:00 PDT", (2024, 5, 6, 17, 0, 0)),
        ("Mon, 06 May 2024 10:00:00 UT", (2024, 5, 6, 10, 0, 0)),
        ("Mon, 06 May 2024 10:00:00 GMT+0800", (2024, 5, 6, 2, 0, 0)),
        ("Mon, 06 May 2024 10:00:00 +08:00", (2024, 5, 6, 2, 0, 0)),
        ("Mon, 06 May 2024 10:00:00 -0000", (2024, 5, 6, 10, 0, 0)),
        ("Mon, 06 May 124 10:00:00 +0000", (2024, 5, 6, 10, 0, 0)),
        ("Mon May  6 10:00:00 2024", (2024, 5, 6, 10, 0, 0)),
        ("Mon May 06 10:00:00 EST 2024", (2024, 5, 6, 15, 0, 0)),
        ("May 6, 2024 10:05:00 PM +0000", (2024, 5, 6, 22, 5, 0)),
        ("6 May 2024 12:30 AM +0000", (2024, 5, 6, 0, 30, 0)),
        ("Monday, 6 May 2024 10:00:00 +0000", (2024, 5, 6, 10, 0, 0)),
        ("Mon, 6-May-2024 10:00:00 +0000", (2024, 5, 6, 10, 0, 0)),
        ("2024-05-06T10:00:00Z", (2024, 5, 6, 10, 0, 0)),
        ("2024-05-06 10:00:00 +0800", (2024, 5, 6, 2, 0, 0)),
        ("2024年5月6日 10:00:00 +0800", (2024, 5, 6, 2, 0, 0)),
        ("2024/05/06 10:00", (2024, 5, 6, 10, 0, 0)),
        ("06.05.2024 10:00:00", (2024, 5, 6, 10, 0, 0)),
        ("29-04-2017 23:34", (2017, 4, 29, 23, 34, 0)),
        ("5/6/2024 10:00:00 AM", (2024, 5, 6, 10, 0, 0)),
        ("Mo, 6 Mai 2024 10:00:00 +0200", (2024, 5, 6, 8, 0, 0)),
        ("Sat, 31 Dec 2016 23:59:60 +0000", (2016, 12, 31, 23, 59, 59)),  # a leap second
        ("Mon, 6 May 2024 24:00:00 +0000", (2024, 5, 7, 0, 0, 0)),
    ],
)
def test_moment(value: str, moment: tuple[int, int, int, int, int, int]) -> None:
    sent_at = parse_mail(f"Date: {value}\r\n\r\n".encode()).sent_at
    assert sent_at == datetime(*moment, tzinfo=UTC)
    assert sent_at.tzinfo is UTC


@pytest.mark.parametrize(
    "value",
    [
        "yesterday",
        "32 May 2024 10:00:00 +0000",
        "31 Feb 2024 10:00:00 +0000",
        "Mon, 6 May 2024 25:00:00 +0000",
        "Mon, 6 May 2024 10:61:00 +0000",
        "Mon, 6 Foo 2024 10:00:00 +0000",
        "1 Jan 0001 00:00:00 +2359",
        "31 Dec 9999 23:59:59 -2359",
        "%DATE%",
        "Mon, 6 May 2024 99999999999999999999:00:00",
        "9" * 5000,
    ],
)
def test_nonsense_is_null_and_a_defect(value: str) -> None:
    mail = parse_mail(f"Date: {value}\r\n\r\n".encode())
    assert mail.sent_at is None
    assert "bad_date" in mail.defects


def test_no_date_is_null_and_a_defect() -> None:
    assert "no_date" in parse_mail(b"Subject: x\r\n\r\n").defects
    assert "no_date" in parse_mail(b"Date: \r\n\r\n").defects


@pytest.mark.parametrize("zone", ["", "XYZ", "+9999"])
def test_unknown_zone_is_utc_and_a_defect(zone: str) -> None:
    mail = parse_mail(f"Date: Mon, 6 May 2024 10:00:00 {zone}\r\n\r\n".encode())
    assert mail.sent_at == datetime(2024, 5, 6, 10, tzinfo=UTC)
    assert "date_zone" in mail.defects


def test_date_folded_over_several_lines() -> None:
    mail = parse_mail(
        b"Date: Thu,\r\n      13\r\n        Feb\r\n          1969\r\n      23:32\r\n               -0330\r\n\r\n"
    )
    assert mail.sent_at == datetime(1969, 2, 14, 3, 2, tzinfo=UTC)
