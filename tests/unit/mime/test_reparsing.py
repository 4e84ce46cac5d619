"""How mails are grouped when they are parsed again, and how the figures add up."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ops_mail.cli.reparsing import BATCH_BYTES, BATCH_MAILS, batches
from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import Listed
from ops_mail.store.reparse import Candidate
from ops_mail.store.reparse_run import Run, Tally, after_batch

DAY = datetime(2026, 1, 5, tzinfo=UTC)


def mail(message_pk: int, size_bytes: int) -> Candidate:
    listed = Listed(Uid(message_pk), size_bytes, DAY, ())
    return Candidate(message_pk, FolderKey("ops", "INBOX"), UidValidity(1), listed, "0" * 64, oversize=False)


def sizes(*given: int) -> list[list[int]]:
    mails = [mail(number, size) for number, size in enumerate(given, 1)]
    grouped = list(batches(mails))
    assert [one for group in grouped for one in group] == mails
    return [[one.listed.size_bytes for one in group] for group in grouped]


def test_small_mails_go_together_up_to_a_number() -> None:
    assert [len(group) for group in sizes(*[10] * (2 * BATCH_MAILS + 1))] == [BATCH_MAILS, BATCH_MAILS, 1]


@pytest.mark.parametrize("large", [BATCH_BYTES, BATCH_BYTES + 1, 50 * BATCH_BYTES])
def test_a_large_mail_is_a_batch_of_its_own(large: int) -> None:
    assert sizes(1, large, 1) == [[1], [large], [1]]
    assert sizes(large) == [[large]]


def test_no_batch_has_more_bytes_than_are_held_at_once() -> None:
    half = BATCH_BYTES // 2
    assert sizes(half, half, half, 1) == [[half, half], [half, 1]]
    assert sizes(half + 1, half, half) == [[half + 1], [half, half]]


def test_a_run_adds_its_batches_up_and_remembers_some_of_the_failures() -> None:
    run = Run(1, "me", "eve", "1", None, 0, 0, Tally(), (), resumed=False)
    run = after_batch(run, 50, Tally(parsed=48, changed=3, skipped=1, failed=1), (7,))
    run = after_batch(run, 400, Tally(parsed=1, failed=200), tuple(range(100, 300)))
    assert (run.position, run.tally) == (400, Tally(parsed=49, changed=3, skipped=1, failed=201))
    assert run.failed_ids == (7, *range(100, 199))
