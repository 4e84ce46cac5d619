"""Options and sessions for the tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from ops_mail.core.mailbox import AuthMethod, Security
from ops_mail.imap import ImapSession, SessionOptions, open_session
from tests.servers.dovecot import PASSWORD, Dovecot
from tests.servers.scripted import ScriptedImap

CLIENT_ID = {"name": "ops-mail", "version": "test"}


def options(
    server: Dovecot | ScriptedImap,
    *,
    user: str = "alice",
    host: str = "127.0.0.1",
    port: int | None = None,
    security: Security = Security.PLAIN,
    auth: AuthMethod = AuthMethod.PASSWORD,
    read_password: Callable[[], str] = lambda: PASSWORD,
    ca_file: Path | None = None,
    connect: float = 10,
    command: float = 10,
) -> SessionOptions:
    return SessionOptions(
        host=host,
        port=port or server.port,
        security=security,
        username=user,
        auth=auth,
        read_password=read_password,
        ca_file=ca_file,
        connect_timeout_seconds=connect,
        command_timeout_seconds=command,
        client_id=CLIENT_ID,
    )


@asynccontextmanager
async def selected(chosen: SessionOptions, folder: str = "INBOX") -> AsyncIterator[ImapSession]:
    """A session with a selected folder; it is cut at the end, whatever happened."""
    session = await open_session(chosen)
    try:
        await session.select(folder)
        yield session
    finally:
        await session.logout(5)
