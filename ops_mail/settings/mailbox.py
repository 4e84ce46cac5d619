"""The words in which a mailbox is described. Pure: the core uses them too."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Security(StrEnum):
    """How the connection to the IMAP server is protected."""

    TLS = "tls"
    STARTTLS = "starttls"
    PLAIN = "plain"

    @property
    def default_port(self) -> int:
        """993 for TLS from the first byte (RFC 8314), 143 otherwise (RFC 3501)."""
        return 993 if self is Security.TLS else 143


class AuthMethod(StrEnum):
    """What the password is: a password, or an OAuth2 access token."""

    PASSWORD = "password"  # noqa: S105 - the name of a method
    OAUTH2 = "oauth2"


class StartMode(StrEnum):
    """Which mails of a folder seen for the first time are landed; a date is the third possibility."""

    ALL = "all"
    NOW = "now"


class AfterAction(StrEnum):
    """What happens on the server to a mail that has landed."""

    KEEP = "keep"
    SEEN = "seen"
    MOVE = "move"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class AfterLanding:
    """The after-action; `folder` (plain Unicode) is set for MOVE alone."""

    action: AfterAction = AfterAction.KEEP
    folder: str | None = None

    def __str__(self) -> str:
        return f"move:{self.folder}" if self.action is AfterAction.MOVE else self.action.value


KEEP = AfterLanding()
"""Mails stay on the server as they are."""
