"""Does a folder still number its mails as we know it? UIDVALIDITY and UIDs, compared after every SELECT."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ops_mail.core.ids import Uid, UidValidity


class Numbering(StrEnum):
    """The verdict."""

    FIRST = "first"  # this folder was never read
    SAME = "same"
    CHANGED = "changed"  # a new UIDVALIDITY: all UIDs mean other mails (RFC 3501 section 2.3.1.1)
    RESTARTED = "restarted"  # the same UIDVALIDITY, but UIDs went backwards: a broken restore on the server


@dataclass(frozen=True, slots=True)
class Known:
    """What our tables say: `uid_validity` None = never read."""

    uid_validity: UidValidity | None
    last_uid: Uid


@dataclass(frozen=True, slots=True)
class Found:
    """What the server says after SELECT. `highest_uid` 0 = empty folder, `uid_next` None = not told (163.com)."""

    uid_validity: UidValidity
    highest_uid: Uid
    uid_next: int | None


@dataclass(frozen=True, slots=True)
class Anchor:
    """INTERNALDATE of one UID in our row and on the server; None = not there."""

    ours: datetime | None
    theirs: datetime | None


def anchor_uid(known: Known, found: Found) -> Uid:
    """The UID whose INTERNALDATE is worth comparing; 0 = none. One that both sides should know."""
    return min(known.last_uid, found.highest_uid)


def judge_numbering(known: Known, found: Found, anchor: Anchor) -> Numbering:
    """Compare both sides.

    UIDNEXT counts only where it agrees with the highest UID (servers are known that get it wrong);
    an INTERNALDATE that differs at the same UID is proof by itself: IMAP never changes one.
    """
    if known.uid_validity is None:
        return Numbering.FIRST
    if known.uid_validity != found.uid_validity:
        return Numbering.CHANGED
    if anchor.ours is not None and anchor.theirs is not None and anchor.ours != anchor.theirs:
        return Numbering.RESTARTED
    if found.uid_next is not None and found.highest_uid < found.uid_next <= known.last_uid:
        return Numbering.RESTARTED
    return Numbering.SAME
