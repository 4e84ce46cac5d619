"""Times for people: how long ago, and when exactly in UTC. Pure; the page's script does the same in local time."""

from __future__ import annotations

from datetime import UTC, datetime

from ops_mail.web.words import Words

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


def relative(at: datetime, now: datetime, words: Words) -> str:
    """`12 s ago`, `in 3 min`: one number, never more exact than it is worth."""
    seconds = (now - at).total_seconds()
    direction = "ago" if seconds >= 0 else "in"
    unit, number = _unit(abs(seconds))
    return words(f"{direction}.{unit}", n=number)


def _unit(seconds: float) -> tuple[str, int]:
    if seconds < 100:
        return "s", int(seconds)
    if seconds < 100 * _MINUTE:
        return "min", round(seconds / _MINUTE)
    if seconds < 48 * _HOUR:
        return "h", round(seconds / _HOUR)
    return "d", round(seconds / _DAY)


def absolute(at: datetime, now: datetime) -> str:
    """`17:25:21 UTC`, with the date unless it is today's."""
    at, now = at.astimezone(UTC), now.astimezone(UTC)
    return f"{at:%H:%M:%S} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M} UTC"


def iso(at: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
