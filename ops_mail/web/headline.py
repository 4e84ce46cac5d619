"""The one line that says how everything is. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ops_mail.web.snapshot import Level, MailboxView, Snapshot

_START_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Headline:
    """`key` names the words, `count` the number in them, `about` a sentence that explains; `names`: the mailboxes."""

    level: Level
    key: str
    count: int = 1
    about: str | None = None
    names: tuple[str, ...] = ()


def headline_of(snapshot: Snapshot) -> Headline:
    """The worst that is true; all is well only when nothing else is."""
    if snapshot.status == "stuck":
        return Headline(Level.BAD, "stuck", about="stuck")
    if snapshot.status == "disabled":
        return Headline(Level.OFF, "disabled", about="disabled")
    here, elsewhere = snapshot.here, snapshot.elsewhere
    if bad := _named(here, Level.BAD):
        return Headline(Level.BAD, "bad", len(bad), names=bad)
    if snapshot.database == "down" and not _still_starting(snapshot):
        return Headline(Level.BAD, "database", about="database")
    if needy := _named(elsewhere, Level.BAD):
        return Headline(Level.WARN, "elsewhere", len(needy), names=needy)
    if warned := _named(here, Level.WARN):
        return Headline(Level.WARN, "warn", len(warned), names=warned)
    if _count(here, Level.BUSY) or snapshot.database == "down":
        return Headline(Level.BUSY, "busy")
    if not here:
        return Headline(Level.OK, "consumer", about="consumer")
    if _count(here, Level.OFF) == len(here):
        return Headline(Level.OFF, "off")
    if _count(here, Level.STANDBY) == len(here):
        return Headline(Level.STANDBY, "standby", about="standby")
    return Headline(Level.OK, "ok", len(here))


def _named(mailboxes: tuple[MailboxView, ...], level: Level) -> tuple[str, ...]:
    return tuple(f"{mailbox.name}/{mailbox.folder}" for mailbox in mailboxes if mailbox.level is level)


def _count(mailboxes: tuple[MailboxView, ...], level: Level) -> int:
    return len(_named(mailboxes, level))


def _still_starting(snapshot: Snapshot) -> bool:
    # The first connection, and the first migration, take a moment.
    return (snapshot.now - snapshot.started_at).total_seconds() < _START_SECONDS
