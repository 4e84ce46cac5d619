"""What a webhook's answer means."""

from __future__ import annotations

import email.utils
import re
from datetime import UTC, datetime

from ops_mail.core.outcome import EndKind

_TRY_AGAIN = frozenset({408, 425, 429})  # RFC 9110 section 15.5.9, RFC 8470 section 5.2, RFC 6585 section 4
_LATER = frozenset({429, 503})
_SECONDS = re.compile(r"\d{1,9}")


def webhook_end(status: int) -> EndKind:
    """2xx is success; 4xx will not pass, but for those that say "not now"; anything else may pass.

    A redirect is not followed: the signed mail would go to whoever the answer names. It may pass (a login page during
    maintenance), so it is tried again.
    """
    if 200 <= status < 300:
        return EndKind.SUCCEEDED
    if 400 <= status < 500 and status not in _TRY_AGAIN:
        return EndKind.PERMANENT
    return EndKind.FAILED


def asks_for_a_pause(status: int, retry_after_seconds: float | None) -> bool:
    """Whether the receiver wants no requests at all for a while, not just this one again later."""
    return status in _LATER and retry_after_seconds is not None


def retry_after_seconds(header: str | None, now: datetime) -> float | None:
    """Retry-After (RFC 9110 section 10.2.3), seconds or a date; None without one that can be read."""
    if header is None:
        return None
    text = header.strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        when = email.utils.parsedate_to_datetime(text)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return max(0.0, (when - now).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):  # years and zones with twenty digits, too
        return None
