"""The words in which a mailbox is described. Pure: the core uses them too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_VARIABLE = re.compile(r"OPS_MAIL_IMAP_([A-Z_]+)(?:=(\w+))?")


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


@dataclass(frozen=True, slots=True)
class MailboxSource:
    """Where a mailbox's settings stand, for whoever has to be told which of them to change.

    In the variables OPS_MAIL_IMAP_…, or in `file` under `entry` (as in `mailbox "orders"`), in lower case.
    """

    file: Path | None = None
    entry: str = ""
    password_key: str = "password"  # or password_file  # noqa: S105 - the name of a setting

    def names(self, *keys: str, also: str = "") -> str:
        """The settings `keys` in words, and `also` what is no setting: `OPS_MAIL_IMAP_HOST, … and the firewall`."""
        keys = tuple(self.password_key if key == "password" else key for key in keys)
        if self.file is None:
            return _listed([*(f"OPS_MAIL_IMAP_{key.upper()}" for key in keys), *([also] if also else [])])
        return f"{_listed(keys)} of {self.entry} in {self.file}" + (f", and {also}" if also else "")

    def reworded(self, text: str) -> str:
        """`text` with each OPS_MAIL_IMAP_… as it is called where this mailbox's settings stand, in backticks."""
        if self.file is None:
            return text
        return _VARIABLE.sub(_as_in_toml, text)

    def is_named_in(self, text: str) -> bool:
        """Whether `text` already says which setting to change."""
        return "OPS_MAIL_" in text or (self.file is not None and f" in {self.file}" in text)


VARIABLES = MailboxSource()
"""One mailbox, described by OPS_MAIL_IMAP_…."""


def _as_in_toml(found: re.Match[str]) -> str:
    key = found[1].lower()
    return f'`{key} = "{found[2]}"`' if found[2] else f"`{key}`"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
