"""What will go wrong, in which order: drawn from a seed alone, so that a run can be repeated."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Group(StrEnum):
    """What recovery from a fault may cost, counted from its end."""

    REACHABLE = "servers reachable"  # backoff maximum + one command timeout
    SILENT = "connection silently dead"  # the IDLE window more: nobody tells (P5)
    PROCESS = "process gone or frozen"  # a lease, or a process's start
    SERVER = "server gone or frozen"


class Kind(StrEnum):
    """Everything that goes wrong."""

    IMAP_RESET = "imap_reset"
    IMAP_REFUSE = "imap_refuse"
    IMAP_FREEZE = "imap_freeze"
    IMAP_FORGET = "imap_forget"
    IMAP_CUT = "imap_cut"
    IMAP_DELAY = "imap_delay"
    IMAP_BYE = "imap_bye"
    DB_RESET = "db_reset"
    DB_REFUSE = "db_refuse"
    DB_FREEZE = "db_freeze"
    DB_CUT = "db_cut"
    DB_DELAY = "db_delay"
    COMMIT_UNANSWERED = "commit_unanswered"
    COMMIT_UNSENT = "commit_unsent"
    LOCK_KILLED = "lock_connection_killed"
    LEADER_KILLED = "leader_killed"
    LEADER_KILLED_LANDING = "leader_killed_in_landing"
    STANDBY_KILLED = "standby_killed"
    LEADER_STOPPED = "leader_terminated"
    LEADER_FROZEN = "leader_frozen"
    DB_KILLED = "database_killed"
    DB_FROZEN = "database_frozen"
    DOVECOT_RESTARTED = "dovecot_restarted"
    EXPUNGED = "landed_mails_expunged"
    FLAGS = "flags_changed"


GROUPS = {
    **dict.fromkeys(Kind, Group.REACHABLE),
    Kind.IMAP_FORGET: Group.SILENT,
    **dict.fromkeys(
        (
            Kind.LEADER_KILLED,
            Kind.LEADER_KILLED_LANDING,
            Kind.STANDBY_KILLED,
            Kind.LEADER_STOPPED,
            Kind.LEADER_FROZEN,
        ),
        Group.PROCESS,
    ),
    **dict.fromkeys((Kind.DB_KILLED, Kind.DB_FROZEN, Kind.DOVECOT_RESTARTED), Group.SERVER),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: `seconds` long, and `amount` of what it is about (bytes before a cut, mails)."""

    number: int
    kind: Kind
    seconds: float
    amount: int


@dataclass(frozen=True, slots=True)
class Step:
    """One or two faults at a time, while `mails` arrive."""

    faults: tuple[Fault, ...]
    mails: int

    @property
    def group(self) -> Group:
        """That of its worst fault."""
        return max((GROUPS[fault.kind] for fault in self.faults), key=list(Group).index)


def draw_steps(seed: int, faults: int, mails: int) -> Iterator[Step]:
    """All kinds come about equally often; in a sixth of the steps two overlap. The mails are spread over all steps."""
    draw = random.Random(seed)
    kinds: list[Kind] = []
    while len(kinds) < faults:
        round_of_all = list(Kind)
        draw.shuffle(round_of_all)
        kinds += round_of_all
    number = 0
    while number < faults:
        together = min(2 if draw.random() < 1 / 6 else 1, faults - number)
        drawn = tuple(_draw_fault(draw, number + place, kinds[number + place]) for place in range(together))
        before = mails * number // faults
        number += together
        yield Step(drawn, mails * number // faults - before)


def _draw_fault(draw: random.Random, number: int, kind: Kind) -> Fault:
    longest = 6.0 if kind in (Kind.IMAP_FREEZE, Kind.DB_FREEZE, Kind.LEADER_FROZEN) else 2.0
    amount = round(10 ** draw.uniform(0, 4.5)) if kind in (Kind.IMAP_CUT, Kind.DB_CUT) else draw.randint(1, 20)
    return Fault(number, kind, draw.uniform(0.1, longest), amount)


def draw_mail(seed: int, number: int) -> bytes:
    """Mostly small; one in fifty is a twin of the one before it, one in two hundred is fetched in pieces."""
    draw = random.Random(f"{seed}/{number}")
    if number % 50 == 49:
        return draw_mail(seed, number - 1)
    size = 1_300_000 if number % 200 == 100 else draw.choice((100, 1_000, 4_000, 30_000))
    head = f"Subject: chaos {number}\r\nMessage-ID: <{number}@chaos.example>\r\nFrom: a@example.org\r\n\r\n"
    lines = f"{draw.getrandbits(480):0120x}\r\n" * max(1, size // 122)
    return head.encode() + lines.encode()
