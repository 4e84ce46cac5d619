"""Why `verify` could not compare: the first cause, not a guess."""

from __future__ import annotations

from pathlib import Path

from ops_mail.cli.verify import _verify_all
from ops_mail.settings import load_settings
from ops_mail.store import open_store
from tests.servers.dovecot import Dovecot


async def error_of(dovecot: Dovecot, user: str, folder: Path, password: str) -> str:
    """What is told of a mailbox that nobody has ever listened to."""
    url = f"sqlite+aiosqlite:///{folder}/ops-mail.db"
    store = open_store(url, lease_seconds=30)
    try:
        await store.migrate()
    finally:
        await store.close()
    values = {"IMAP_HOST": dovecot.host, "IMAP_PORT": dovecot.port, "IMAP_SECURITY": "plain", "IMAP_USERNAME": user}
    values |= {"IMAP_PASSWORD": password, "DATABASE_URL": url}
    settings = load_settings({f"OPS_MAIL_{name}": str(value) for name, value in values.items()}, None)
    (finding,) = await _verify_all(settings)
    assert not finding.good
    return finding.error or ""


async def test_a_login_that_fails_is_the_cause(dovecot: Dovecot, user: str, tmp_path: Path) -> None:
    error = await error_of(dovecot, user, tmp_path, "wrong")
    assert "refused the login" in error
    assert "OPS_MAIL_IMAP_PASSWORD" in error


async def test_with_a_login_that_works_it_is_the_listener(dovecot: Dovecot, user: str, tmp_path: Path) -> None:
    error = await error_of(dovecot, user, tmp_path, dovecot.password)
    assert error == "never read: no instance listens to it; start `ops-mail run`"
