"""How far another machine's clock is from this one's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from ops_mail.cli.check.rows import Row, Verdict
from ops_mail.store import Store
from ops_mail.store.columns import db_now

_WARNING_SECONDS = 5.0
_ADVICE = "let both machines set their clocks by NTP (chrony, systemd-timesyncd)"


@dataclass(frozen=True, slots=True)
class Skew:
    """How far a clock is ahead of ours (negative: behind), and how uncertain that is."""

    seconds: float
    uncertain_seconds: float

    @property
    def least_seconds(self) -> float:
        """By how much it is wrong for sure."""
        return max(0.0, abs(self.seconds) - self.uncertain_seconds)


async def database_clock_row(store: Store, lease_seconds: float, group: str, step: str) -> Row:
    """The database server's clock, by which leases run. Raises StoreError."""
    if store.dialect == "sqlite":
        return Row(group, step, Verdict.OK, "SQLite goes by the clock of this machine")
    async with store.database.reading("asking for the server's time") as connection:

        async def ask() -> datetime:
            now: datetime = (await connection.execute(sa.select(db_now().label("now")))).scalar_one()
            return now

        skew = await measured(ask)
    return skew_row(group, step, "the database's clock", skew, lease_seconds)


async def measured(ask: Callable[[], Awaitable[datetime]]) -> Skew:
    """The skew of the clock that `ask` reads: it was read somewhere between the question and the answer."""
    asked = datetime.now(UTC)
    theirs = await ask()
    answered = datetime.now(UTC)
    return between(asked, theirs, answered)


def between(asked: datetime, theirs: datetime, answered: datetime, resolution_seconds: float = 0.0) -> Skew:
    """The skew of a clock that showed `theirs`, cut to its resolution, at some time from `asked` to `answered`."""
    half = (answered - asked) / 2
    ahead = (theirs - (asked + half)).total_seconds() + resolution_seconds / 2
    return Skew(ahead, half.total_seconds() + resolution_seconds / 2)


def skew_row(group: str, step: str, whose: str, skew: Skew, lease_seconds: float | None) -> Row:
    """More than `lease_seconds` is a failure (None: never), more than five seconds a warning."""
    if skew.least_seconds <= _WARNING_SECONDS and (lease_seconds is None or skew.least_seconds <= lease_seconds):
        exact = max(0.1, skew.uncertain_seconds)
        return Row(group, step, Verdict.OK, f"{whose} and this machine's are at most {_bound(skew, exact)} s apart")
    way = "ahead of" if skew.seconds > 0 else "behind"
    detail = f"{whose} is {abs(skew.seconds):.1f} s {way} this machine's"
    if lease_seconds is not None and skew.least_seconds > lease_seconds:
        return Row(
            group, step, Verdict.FAIL, f"{detail}, more than OPS_MAIL_LEASE_SECONDS ({lease_seconds:g})", _ADVICE
        )
    return Row(group, step, Verdict.WARN, detail, _ADVICE)


def _bound(skew: Skew, least: float) -> str:
    return f"{max(least, abs(skew.seconds) + skew.uncertain_seconds):.1f}"
