"""FETCH responses → values (RFC 3501 section 7.4.2). Pure.

Nothing is guessed: a response that does not fit the grammar raises WireError, because a mail that is read at the wrong
boundary would be kept wrong for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from ops_mail.core.ids import Uid
from ops_mail.core.mail import Listed
from ops_mail.imap.wire import Response, WireError

MAX_UID = 2**32 - 1
_MAX_NUMBER = 2**63 - 1  # RFC 9051's number64: what is larger counts a lie, and fits no column either
UNKNOWN_DATE = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for an INTERNALDATE that the server did not give or that is no date."""

_HEAD = re.compile(rb"\* (\d{1,10}) FETCH \(", re.IGNORECASE)
_TOKEN = re.compile(
    rb' *(?:(?P<open>\()|(?P<close>\))|(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<literal>~?\{\d+\+?\}$)'
    rb'|(?P<atom>[^\s()"{\[]+(?:\[[^\]]*\](?:<\d{1,10}>)?)?))',
)
_NO_VALUE = "a FETCH response with an attribute that has no value"
_ESCAPED = re.compile(rb"\\(.)")
_DATE = re.compile(rb" ?(\d{1,2})-([A-Za-z]{3})-(\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)$")
_MONTHS = {name: number for number, name in enumerate(b"jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}


@dataclass(frozen=True, slots=True)
class Dropped:
    """A literal that was larger than allowed; its bytes were not kept."""

    size: int


Value = bytes | None | Dropped | tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Fetched:
    """One FETCH response: the sequence number and its attributes, names in upper case (`BODY[]<0>` as sent).

    `uid` is the UID inside the response, None when it has none (it was not asked for by UID).
    """

    sequence: int
    uid: Uid | None
    attributes: dict[str, Value]


def parse_fetch(response: Response) -> Fetched | None:
    """The FETCH response in `response`, None when it is another kind. Raises WireError when it is malformed."""
    head = _HEAD.match(response.first)
    if head is None:
        return None
    tokens = _tokens(response, head.end())
    attributes: dict[str, Value] = {}
    for kind, name in tokens:
        if kind == "close":
            if next(tokens, None) is not None:
                raise WireError("a FETCH response that goes on after its end")
            return Fetched(int(head.group(1)), _uid(attributes), attributes)
        if kind != "atom" or not isinstance(name, bytes):
            raise WireError("a FETCH response without an attribute name where one is due")
        attributes[name.decode("ascii", "replace").upper()] = _value(tokens)
    raise WireError("a FETCH response that does not end")


def _uid(attributes: dict[str, Value]) -> Uid | None:
    if "UID" not in attributes:
        return None
    number = _number(attributes["UID"])
    if number is None or not 1 <= number <= MAX_UID:
        raise WireError("a FETCH response with an impossible UID")
    return Uid(number)


def listed(fetched: Fetched) -> Listed | None:
    """The listing line in a FETCH response that has UID, size and date; None when one of them is missing."""
    uid = fetched.uid
    size = _number(fetched.attributes.get("RFC822.SIZE"))
    if uid is None or size is None or "INTERNALDATE" not in fetched.attributes:
        return None
    date = fetched.attributes["INTERNALDATE"]
    return Listed(uid, size, internal_date(date if isinstance(date, bytes) else b""), flags(fetched))


def flags(fetched: Fetched) -> tuple[str, ...]:
    """The FLAGS of a FETCH response, empty when it has none."""
    value = fetched.attributes.get("FLAGS")
    if not isinstance(value, tuple):
        return ()
    return tuple(flag.decode("utf-8", "replace") for flag in value if isinstance(flag, bytes))


def internal_date(text: bytes) -> datetime:
    """An INTERNALDATE as UTC; UNKNOWN_DATE for what is none, since a bad date must not hold up a mail."""
    found = _DATE.match(text)
    if found is None:
        return UNKNOWN_DATE
    day, month, year, hour, minute, second, sign, zone_hours, zone_minutes = found.groups()
    offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes))
    try:
        local = datetime(
            int(year), _MONTHS[month.lower()], int(day), int(hour), int(minute), min(int(second), 59),
            tzinfo=timezone(-offset if sign == b"-" else offset),
        )  # fmt: skip
        moment = local.astimezone(UTC)
    except (ValueError, KeyError, OverflowError):
        return UNKNOWN_DATE
    return moment if moment.year >= 1900 else UNKNOWN_DATE


def _number(value: Value) -> int | None:
    if not isinstance(value, bytes) or not value.isdigit() or len(value) > 20:
        return None
    number = int(value)
    return number if number <= _MAX_NUMBER else None


def _tokens(response: Response, start: int) -> Iterator[tuple[str, bytes | Dropped]]:
    for index, text in enumerate(response.texts):
        position = start if index == 0 else 0
        end = len(text.rstrip(b" "))
        is_last = index == len(response.literals)
        while position < end:
            found = _TOKEN.match(text, position)
            if found is None or found.lastgroup is None:
                raise WireError("a FETCH response with a piece that fits no grammar")
            position = found.end()
            if found.lastgroup == "literal":
                if is_last or position != len(text):
                    raise WireError("a FETCH response whose literal is missing")
                content = response.literals[index]
                yield "literal", Dropped(_announced(found)) if content is None else content
            elif found.lastgroup == "quoted":
                yield "quoted", _ESCAPED.sub(rb"\1", found.group("quoted")[1:-1])
            else:
                yield found.lastgroup, found.group(found.lastgroup)


def _announced(found: re.Match[bytes]) -> int:
    return int(found.group("literal").strip(b"~{+}"))


def _value(tokens: Iterator[tuple[str, bytes | Dropped]]) -> Value:
    stack: list[list[Value]] = []
    for kind, content in tokens:
        value: Value
        if kind == "open":
            stack.append([])
            continue
        if kind == "close":
            if not stack:
                raise WireError(_NO_VALUE)
            value = tuple(stack.pop())
        elif kind == "atom" and content in (b"NIL", b"nil"):
            value = None
        else:
            value = content
        if not stack:
            return value
        stack[-1].append(value)
    raise WireError(_NO_VALUE)
