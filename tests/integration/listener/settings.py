"""Settings for the product under test."""

from __future__ import annotations

from tests.servers.dovecot import Dovecot


def imap_settings(dovecot: Dovecot, user: str, database_url: str, **more: object) -> dict[str, object]:
    """Over TLS, verified."""
    return {
        "IMAP_HOST": "127.0.0.1",
        "IMAP_PORT": dovecot.tls_port,
        "IMAP_CA_FILE": dovecot.ca_file,
        "IMAP_USERNAME": user,
        "IMAP_PASSWORD": dovecot.password,
        "DATABASE_URL": database_url,
        **more,
    }


def plain_settings(port: int, dovecot: Dovecot, user: str, database_url: str, **more: object) -> dict[str, object]:
    """Without TLS, so that a proxy on `port` can read along."""
    return {
        "IMAP_HOST": "127.0.0.1",
        "IMAP_PORT": port,
        "IMAP_SECURITY": "plain",
        "IMAP_USERNAME": user,
        "IMAP_PASSWORD": dovecot.password,
        "DATABASE_URL": database_url,
        **more,
    }
