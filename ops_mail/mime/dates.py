"""The Date header: RFC 5322 with the obsolete forms, and the other ways in which mail writes a moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from ops_mail.mime.defects import Defect
from ops_mail.mime.notes import Notes

_ENGLISH = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_ENGLISH, 1)}
# Other languages that mailers write dates in, by their first letters, where those are not the English ones.
_MONTHS |= {
    "mrz": 3,
    "mär": 3,
    "mai": 5,
    "okt": 10,
    "dez": 12,
    "fév": 2,
    "fev": 2,
    "avr": 4,
    "juin": 6,
    "juil": 7,
    "aoû": 8,
    "déc": 12,
}
_MONTHS |= {"ene": 1, "abr": 4, "ago": 8, "dic": 12, "gen": 1, "mag": 5, "giu": 6, "lug": 7, "set": 9, "ott": 10}
_ZONES = {
    "ut": 0, "utc": 0, "gmt": 0, "z": 0, "wet": 0, "west": 60, "bst": 60, "cet": 60, "met": 60, "mez": 60, "cest":
    120, "mest": 120, "mesz": 120, "eet": 120, "eest": 180, "msk": 180, "msd": 240, "hkt": 480, "sgt": 480, "jst":
    540, "kst": 540, "aest": 600, "aedt": 660, "nzst": 720, "nzdt": 780, "est": -300, "edt": -240, "cst": -360,
    "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420, "akst": -540, "akdt": -480, "hst": -600, "ast":
    -240, "adt": -180, "brt": -180,
}  # fmt: skip
_COMMENT = re.compile(r"\([^()]*\)")
_CHINESE = str.maketrans({"年": "-", "月": "-", "日": " "})  # 2024年5月6日
_AROUND_COLON = re.compile(r" ?: ?")
_CLOCK = re.compile(
    r"(?<![\d:])(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:[.,]\d+)?)?(?:\s{0,3}([ap])\.?m\b\.?)?", re.IGNORECASE
)
_DOTTED_CLOCK = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{2})(?:\.(\d{2}))?()(?![\d.])")
_ISO = re.compile(
    r"\s*(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T\s]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*(.*))?\Z",
    re.IGNORECASE,
)
_DAY_FIRST = re.compile(
    r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|\.)?[\s-]{0,5}([^\W\d]{3,12})\.?,?[\s-]{0,5}(\d{2,4})(?![\d:])"
)
_MONTH_FIRST = re.compile(
    r"(?<![^\W\d])([^\W\d]{3,12})\.?[\s-]{1,5}(\d{1,2})(?:st|nd|rd|th)?(?![\d:]),?(?:\s{1,3}(\d{4})(?![\d:]))?"
)
_YEAR = re.compile(r"(?<![\d:+-])(\d{4})(?![\d:])")
_SLASHED = re.compile(r"(?<!\d)(\d{1,2})[/.-](\d{1,2})[/.-](\d{4}|\d{2})(?!\d)")
_OFFSET = re.compile(r"(?:(?:GMT|UTC)\s?)?([+-])\s?(\d{1,2}):?(\d{2})?(?!\d)", re.IGNORECASE)
_ZONE_NAME = re.compile(r"[A-Za-z]{1,5}\b")
_MAX_LENGTH = 200


def read_date(value: str, notes: Notes) -> datetime | None:
    """The moment that a Date header names, in UTC; None (and a defect) when it names none. Never raises."""
    text = value[:_MAX_LENGTH].translate(_CHINESE)
    text = _AROUND_COLON.sub(":", " ".join(_COMMENT.sub(" ", text).split()))
    iso = _ISO.match(text)
    if iso is not None:
        year, month, day = int(iso[1]), int(iso[2]), int(iso[3])
        clock = (int(iso[4] or 0), int(iso[5] or 0), int(iso[6] or 0))
        return _moment((year, month, day), clock, iso[7] or "", value, notes)
    clock_match = _CLOCK.search(text) or _DOTTED_CLOCK.search(text)
    clock, rest = (0, 0, 0), ""
    before = text
    if clock_match is not None:
        clock = _clock(clock_match)
        before, rest = text[: clock_match.start()], text[clock_match.end() :]
    date = _date(before, rest) if clock_match is not None else _date(text, "")
    if date is None or (clock_match is None and ":" in text):
        notes.add(Defect.BAD_DATE)
        return None
    return _moment(date, clock, rest, value, notes)


def _clock(match: re.Match[str]) -> tuple[int, int, int]:
    hour = int(match[1])
    if match[4]:
        hour = hour % 12 + (12 if match[4] in "pP" else 0)
    return hour, int(match[2]), int(match[3] or 0)


def _date(before: str, after: str) -> tuple[int, int, int] | None:
    for text in (before, after):
        match = _DAY_FIRST.search(text)
        if match is not None and (month := _month(match[2])):
            return _year(match[3]), month, int(match[1])
    for match in _MONTH_FIRST.finditer(before):  # "Tue Feb 13 23:01:18 2024", as ctime writes it
        year = match[3] or _found_year(after)
        if (month := _month(match[1])) and year:
            return _year(year), month, int(match[2])
    match = _SLASHED.search(before) or _SLASHED.search(after)
    if match is not None:
        first, second = int(match[1]), int(match[2])
        day_first = "/" not in match[0] or first > 12
        return (_year(match[3]), second, first) if day_first else (_year(match[3]), first, second)
    return None


def _month(word: str) -> int | None:
    lower = word.lower()
    return _MONTHS.get(lower[:4]) or _MONTHS.get(lower[:3])


def _found_year(after: str) -> str | None:
    match = _YEAR.search(after)
    return match[1] if match else None


def _year(digits: str) -> int:
    """RFC 5322 section 4.3: 00 to 49 are 2000 to 2049; 50 to 99 and three digits count from 1900."""
    year = int(digits)
    if len(digits) == 2:
        return year + (2000 if year < 50 else 1900)
    return year + 1900 if len(digits) == 3 else year


def _moment(
    date: tuple[int, int, int], clock: tuple[int, int, int], rest: str, value: str, notes: Notes
) -> datetime | None:
    offset = _zone(rest, value)
    if offset is None:
        notes.add(Defect.DATE_ZONE)
        offset = 0
    hour, minute, second = clock
    try:
        # A leap second has no place in datetime: one second early is near enough. 24:00 is the next day's 0:00.
        local = datetime(
            *date, 0, minute, min(second, 59) if second <= 60 else second, tzinfo=timezone(timedelta(minutes=offset))
        )
        if hour > 24 or (hour == 24 and (minute or second)):
            raise ValueError
        return (local + timedelta(hours=hour)).astimezone(UTC)
    except (ValueError, OverflowError):
        notes.add(Defect.BAD_DATE)
        return None


def _zone(rest: str, value: str) -> int | None:
    """Minutes east of Greenwich; None when nothing known is said."""
    numeric = _OFFSET.search(rest)
    if numeric is not None:
        hours, minutes = int(numeric[2]), int(numeric[3] or 0)
        if hours < 24 and minutes < 60:
            return (hours * 60 + minutes) * (-1 if numeric[1] == "-" else 1)
        return None
    named = _ZONE_NAME.search(rest) or _named_in_comment(value)
    if named is None:
        return None
    return _ZONES.get(named[0].lower())


def _named_in_comment(value: str) -> re.Match[str] | None:
    comment = _COMMENT.search(value[:_MAX_LENGTH])
    return None if comment is None else _ZONE_NAME.match(comment[0], 1)
