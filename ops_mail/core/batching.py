"""Cut a listing into batches that are bounded by count and bytes before anything is fetched."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ops_mail.core.ids import Uid
from ops_mail.core.mail import Listed


class BatchKind(StrEnum):
    """How the bodies of a batch are fetched."""

    SMALL = "small"  # one FETCH, held in memory
    LARGE = "large"  # one mail, in pieces, into a spool file
    OVERSIZE = "oversize"  # one mail, header only


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """`max_messages` and `max_bytes` bound one FETCH; a mail over `large_bytes` travels alone and in pieces;
    one over `max_message_bytes` lands its header only.
    """

    max_messages: int = 200
    max_bytes: int = 4 * 1024 * 1024
    large_bytes: int = 1024 * 1024
    max_message_bytes: int = 52_428_800


@dataclass(frozen=True, slots=True)
class Batch:
    """Neighbouring mails in ascending UID order that are fetched, prepared and landed together."""

    kind: BatchKind
    mails: tuple[Listed, ...]

    @property
    def last_uid(self) -> Uid:
        return self.mails[-1].uid


def plan_batches(listing: Sequence[Listed], limits: BatchLimits, alone: Collection[Uid] = ()) -> Iterator[Batch]:
    """Batches that cover `listing` (ascending) completely, in order, each UID once.

    A UID in `alone` (suspected of breaking its batch) gets a batch of its own.
    RFC822.SIZE is taken as a hint: it bounds the batch, and a server that lies costs memory, not a mail.
    """
    group: list[Listed] = []
    group_bytes = 0
    for mail in listing:
        kind = _kind_of(mail, limits)
        full = len(group) >= limits.max_messages or group_bytes + mail.size_bytes > limits.max_bytes
        if group and (kind is not BatchKind.SMALL or full or mail.uid in alone):
            yield Batch(BatchKind.SMALL, tuple(group))
            group, group_bytes = [], 0
        if kind is not BatchKind.SMALL or mail.uid in alone:
            yield Batch(kind, (mail,))
            continue
        group.append(mail)
        group_bytes += mail.size_bytes
    if group:
        yield Batch(BatchKind.SMALL, tuple(group))


def _kind_of(mail: Listed, limits: BatchLimits) -> BatchKind:
    if mail.size_bytes > limits.max_message_bytes:
        return BatchKind.OVERSIZE
    if mail.size_bytes > min(limits.large_bytes, limits.max_bytes):
        return BatchKind.LARGE
    return BatchKind.SMALL
