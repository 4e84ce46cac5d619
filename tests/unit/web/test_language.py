"""Who reads which language."""

from __future__ import annotations

import pytest

from ops_mail.web.language import Language, choose_language


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (None, "en"),
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("zh-Hans-CN", "zh"),
        ("ZH", "zh"),
        ("zh-TW", "zh"),  # nearer to its reader than English
        ("en-US,en;q=0.5,zh;q=0.4", "en"),
        ("en;q=0.5, zh;q=0.9", "zh"),
        ("fr, de;q=0.9", "en"),
        ("fr, zh;q=0.1", "zh"),
        ("de, *;q=0.5", "en"),
        ("en;q=0.1, *;q=0.9", "zh"),
        ("zh;q=0", "en"),
        ("en;q=0, *", "zh"),
        ("*;q=0", "en"),
        ("en,zh", "en"),
        ("zh,en", "zh"),
        ("zh;q=nonsense,en;q=0.2", "en"),
        ("zh;q=nan,en;q=0.2", "en"),
        ("zhx, enx", "en"),
        (";;;,,,=;q", "en"),
        ("x," * 100_000 + "zh", "en"),  # beyond any honest length it is not read
    ],
)
def test_the_header_chooses_by_quality(header: str | None, language: str) -> None:
    assert choose_language(None, header) == language


def test_the_reader_who_asks_for_a_language_gets_it() -> None:
    assert choose_language("zh", "en") is Language.CHINESE
    assert choose_language("en", "zh-CN") is Language.ENGLISH
    assert choose_language("xx", "zh-CN") is Language.CHINESE
    assert choose_language('"><script>', None) is Language.ENGLISH
