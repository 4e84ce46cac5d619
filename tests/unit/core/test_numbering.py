"""Which mails a folder's numbers mean."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ops_mail.core.ids import Uid, UidValidity
from ops_mail.core.numbering import Anchor, Found, Known, Numbering, anchor_uid, judge_numbering

DAY = datetime(2026, 1, 1, tzinfo=UTC)
OTHER_DAY = datetime(2026, 1, 2, tzinfo=UTC)
NOTHING = Anchor(None, None)


def known(validity: int | None = 7, last: int = 100) -> Known:
    return Known(None if validity is None else UidValidity(validity), Uid(last))


def found(validity: int = 7, highest: int = 100, uid_next: int | None = 101) -> Found:
    return Found(UidValidity(validity), Uid(highest), uid_next)


@pytest.mark.parametrize(
    ("ours", "theirs", "anchor", "verdict"),
    [
        (known(None, 0), found(), NOTHING, Numbering.FIRST),
        (known(), found(), Anchor(DAY, DAY), Numbering.SAME),
        (known(), found(highest=250, uid_next=251), Anchor(DAY, DAY), Numbering.SAME),
        (known(), found(validity=8), NOTHING, Numbering.CHANGED),
        # The newest mails were expunged: the highest UID falls, UIDNEXT does not.
        (known(), found(highest=40, uid_next=101), Anchor(DAY, DAY), Numbering.SAME),
        (known(), found(highest=0, uid_next=101), NOTHING, Numbering.SAME),
        # A restore from backup under the old UIDVALIDITY.
        (known(), found(highest=40, uid_next=41), Anchor(DAY, DAY), Numbering.RESTARTED),
        (known(), found(highest=0, uid_next=1), NOTHING, Numbering.RESTARTED),
        (known(), found(highest=250, uid_next=251), Anchor(DAY, OTHER_DAY), Numbering.RESTARTED),
        (known(), found(highest=100, uid_next=None), Anchor(DAY, OTHER_DAY), Numbering.RESTARTED),
        # A UIDNEXT that the folder itself contradicts is no evidence.
        (known(), found(highest=100, uid_next=5), Anchor(DAY, DAY), Numbering.SAME),
        (known(), found(highest=0, uid_next=None), NOTHING, Numbering.SAME),
    ],
)
def test_the_verdict(ours: Known, theirs: Found, anchor: Anchor, verdict: Numbering) -> None:
    assert judge_numbering(ours, theirs, anchor) is verdict


def test_the_anchor_is_a_uid_that_both_sides_should_know() -> None:
    assert anchor_uid(known(last=100), found(highest=250)) == 100
    assert anchor_uid(known(last=100), found(highest=40)) == 40
    assert anchor_uid(known(last=100), found(highest=0)) == 0
