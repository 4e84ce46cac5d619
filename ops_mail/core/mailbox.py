"""How a mailbox is reached."""

from __future__ import annotations

from enum import StrEnum


class Security(StrEnum):
    """How the connection to the IMAP server is protected (`IMAP_SECURITY`)."""

    TLS = "tls"  # TLS from the first byte, port 993
    STARTTLS = "starttls"  # plain greeting, upgraded before the login (RFC 3501 section 6.2.1), port 143
    PLAIN = "plain"  # no protection: for tests and for servers on the same machine


class AuthMethod(StrEnum):
    """How the mailbox logs in (`IMAP_AUTH`)."""

    PASSWORD = "password"  # noqa: S105  # the name of the method
    OAUTH2 = "oauth2"
