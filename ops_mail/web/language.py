"""Which language a reader gets. Pure."""

from __future__ import annotations

from enum import StrEnum

_LONGEST_HEADER = 1000


class Language(StrEnum):
    """The languages of the page; the value is what `?lang=` takes."""

    ENGLISH = "en"
    CHINESE = "zh"

    @property
    def tag(self) -> str:
        """The BCP 47 tag of the words."""
        return "zh-Hans" if self is Language.CHINESE else "en"


def choose_language(wanted: str | None, accept_language: str | None) -> Language:
    """`wanted` (from `?lang=`) if it is one of ours, else the best of Accept-Language (RFC 9110 section 12.5.4)."""
    named = _language_of(wanted or "")
    if named is not None:
        return named
    weights: dict[str, float] = {}
    for item in (accept_language or "")[:_LONGEST_HEADER].split(","):
        tag, _, parameters = item.partition(";")
        name = _language_of(tag.strip()) or ("*" if tag.strip() == "*" else None)
        if name is not None:
            weights[name] = max(weights.get(name, 0.0), _quality(parameters))
    rest = weights.get("*", 0.0)
    # Of equals the one that was named first wins, and English among those that were not named at all.
    candidates = [Language(name) for name in weights if name != "*"]
    candidates += [language for language in Language if language not in candidates]
    best = max(candidates, key=lambda language: weights.get(language, rest))
    return best if weights.get(best, rest) > 0 else Language.ENGLISH


def _language_of(tag: str) -> Language | None:
    primary = tag.partition("-")[0].lower()
    return Language(primary) if primary in set(Language) else None


def _quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        quality = float(value)
    except ValueError:
        return 0.0
    return min(max(quality, 0.0), 1.0) if quality == quality else 0.0  # noqa: PLR0124 - NaN is unequal to itself
