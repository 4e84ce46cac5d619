"""What is needed to open a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ops_mail.core.mailbox import VARIABLES, AuthMethod, MailboxSource, Security


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """One mailbox's server and login.

    `read_password` is called at each login, in a thread, so that a rotated secret file is seen; with OAUTH2 it gives
    the access token. It may raise OSError or ValueError: the login then fails with AUTH.
    `ca_file` replaces the system's certificate authorities. `client_id` is what ID tells the server (RFC 2971).
    Errors name the settings as `source` does.
    """

    host: str
    port: int
    security: Security
    username: str
    auth: AuthMethod
    read_password: Callable[[], str] = field(repr=False)
    ca_file: Path | None
    connect_timeout_seconds: float
    command_timeout_seconds: float
    client_id: Mapping[str, str]
    source: MailboxSource = VARIABLES

    @property
    def address(self) -> str:
        """`host:port` for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
