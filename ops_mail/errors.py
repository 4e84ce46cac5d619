"""Every error that ops-mail raises on purpose, translated once at the edge that saw it.

A message is written for the person who has to act: what happened, which mailbox or setting, what to do.
No message ever holds a secret (promise P11).
"""

from __future__ import annotations

from enum import StrEnum


class OpsMailError(Exception):
    """Base of all errors raised on purpose; anything else that escapes is a bug."""


class ConfigError(OpsMailError):
    """The settings are wrong. `problems` holds one line per mistake, each naming its variable."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Failure(StrEnum):
    """Why a mailbox session could not start or did not go on; the label `reason` of `reconnects_total`."""

    UNREACHABLE = "unreachable"  # DNS, refused, no route, connect timeout
    TLS = "tls"  # handshake or certificate
    AUTH = "auth"  # the server refused the login
    FOLDER = "folder"  # SELECT refused or the folder is missing
    TIMEOUT = "timeout"  # a command was not answered in time
    LOST = "lost"  # the connection broke
    BYE = "bye"  # the server said goodbye
    PROTOCOL = "protocol"  # NO, BAD or nonsense where OK was due
    DATABASE = "database"  # landing was impossible: the store is down or refuses
    INTERNAL = "internal"  # a bug or a local fault (no process, no disk)


class ImapError(OpsMailError):
    """The IMAP side failed. The connection it came from must not be used again."""

    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure = failure


class StoreError(OpsMailError):
    """Base of everything the database or blob store may raise."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, timed out, is read-only or full: no mail's fault, try again later."""


class StoreRefused(StoreError):
    """The database refused this very data (too long, wrong type, constraint): retrying alone cannot help."""


class Fenced(StoreError):
    """Another instance holds a higher epoch; nothing of this transaction was committed (promise P3)."""


class GuardLost(StoreError):
    """The single-instance guard is gone: lock connection died or the lease ran out."""


class ForbiddenTable(StoreError):
    """A statement named a table outside `ops_*`; it was not sent (promise P8)."""


class UnreadableStatement(ForbiddenTable):
    """A statement could not be understood, so that it might name any table; it was not sent (promise P8)."""
