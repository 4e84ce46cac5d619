"""Times for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from ops_mail.web.language import Language
from ops_mail.web.when import absolute, iso, relative
from ops_mail.web.words import Words

NOW = datetime(2026, 11, 29, 17, 25, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s ago"),
        (12.9, "12 s ago"),
        (99.9, "99 s ago"),
        (100, "2 min ago"),
        (5_999, "100 min ago"),
        (6_000, "2 h ago"),
        (47 * 3600, "47 h ago"),
        (48 * 3600, "2 d ago"),
        (400 * 86_400, "400 d ago"),
        (-48, "in 48 s"),
        (-600, "in 10 min"),
    ],
)
def test_how_long_ago_is_one_number(seconds: float, text: str) -> None:
    assert relative(NOW - timedelta(seconds=seconds), NOW, Words(Language.ENGLISH)) == text


def test_how_long_ago_in_chinese() -> None:
    assert relative(NOW - timedelta(seconds=12), NOW, Words(Language.CHINESE)) == "12 秒前"
    assert relative(NOW + timedelta(hours=3), NOW, Words(Language.CHINESE)) == "3 小时后"


def test_a_moment_of_today_needs_no_date() -> None:
    assert absolute(NOW - timedelta(hours=1), NOW) == "16:25:21 UTC"
    assert absolute(NOW - timedelta(days=1), NOW) == "2026-11-28 17:25 UTC"
    assert absolute(NOW.astimezone(timezone(timedelta(hours=8))), NOW) == "17:25:21 UTC"


def test_moments_for_machines_are_utc_with_milliseconds() -> None:
    assert iso(NOW.astimezone(timezone(timedelta(hours=8)))) == "2026-11-29T17:25:21.000Z"
