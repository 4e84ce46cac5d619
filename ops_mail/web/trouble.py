"""What kind of trouble a mailbox is in, which decides the advice. Pure."""

from __future__ import annotations

from enum import StrEnum

from ops_mail.errors import Failure


class Trouble(StrEnum):
    """Each has its words in every language (`advice.…`)."""

    UNREACHABLE = "unreachable"
    TLS = "tls"
    AUTH = "auth"
    FOLDER = "folder"
    TIMEOUT = "timeout"
    LOST = "lost"
    BYE = "bye"
    PROTOCOL = "protocol"
    DATABASE = "database"
    INTERNAL = "internal"
    GUARD = "guard"  # the right to listen was lost
    ORPHAN = "orphan"  # no living process listens
    SILENT = "silent"  # no error, and no sync either


SETTINGS_OF_A_MAILBOX = frozenset({Trouble.UNREACHABLE, Trouble.TLS, Trouble.AUTH, Trouble.FOLDER})
"""Their advice names settings that may stand in a mailboxes file instead."""

# What the errors of each kind have in common, for those of which only the text is known: another process's, read
# from the database. The first that fits counts.
_SIGNS: tuple[tuple[Trouble, tuple[str, ...]], ...] = (
    (Trouble.DATABASE, ("the database refused", "the database cannot be", "no database of", "access denied for user")),
    (Trouble.GUARD, ("taken over", "guard", "lease", "fenced", "lock connection")),
    (Trouble.AUTH, ("refused the login", "the password of", "allows no password login", "oauth")),
    (Trouble.TLS, ("certificate", "tls", "starttls")),
    (Trouble.FOLDER, ("folder",)),
    (Trouble.UNREACHABLE, ("cannot be resolved", "no connection to", "was not there within", "instead of greeting")),
    (Trouble.DATABASE, ("database", "table is missing", "landing:", "the cursor")),
    (Trouble.TIMEOUT, ("no answer within", "did not answer", "not answered", "timed out", "timeout")),
    (Trouble.BYE, ("ended the session",)),
    (Trouble.LOST, ("connection broke", "closed the connection", "connection was closed", "session was dropped")),
)


def trouble_of(failure: Failure | None, error: str | None) -> Trouble | None:
    """The trouble behind a failure, or behind an error of which only the text is known; None without either."""
    if failure is not None:
        return Trouble(failure.value)
    if not error:
        return None
    text = error.partition(": check ")[0].lower()  # not what its advice names: files and mailboxes of any name
    return next((trouble for trouble, signs in _SIGNS if any(sign in text for sign in signs)), Trouble.PROTOCOL)
