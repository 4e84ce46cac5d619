"""ORDER=uid: which mail of a folder may be worked on now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ops_mail.core.mail import MessageStatus

UNFINISHED = (MessageStatus.LANDED, MessageStatus.RETRY, MessageStatus.PROCESSING, MessageStatus.DEAD)
"""A mail in one of these holds up those behind it. Quarantined and oversize mails were never given to a handler and
hold up nothing (promise P4); `done` and `skipped` are finished."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first mail of one status in a folder. `due`: it may be claimed as far as its own row is concerned."""

    id: int
    uid_validity: int
    uid: int
    due: bool


def next_in_order(heads: Iterable[Head]) -> Head | None:
    """The mail that is first of all unfinished ones, if it is due; None while the first one has to wait.

    By numbering, then by UID: UIDVALIDITY grows whenever a folder is numbered anew (RFC 3501 section 2.3.1.1), and a
    numbering that was taken back has a negative one, so what landed under an older numbering comes first.
    """
    first = min(heads, key=lambda head: (head.uid_validity, head.uid), default=None)
    return first if first is not None and first.due else None
