"""A real IMAP server inside this process: pymap on a loopback port, one user, everything in memory."""

from __future__ import annotations

import asyncio
import ssl
from argparse import Namespace
from collections.abc import Iterable
from contextlib import AsyncExitStack
from datetime import datetime

from proxyprotocol.sock import SocketInfoLocal
from pymap.backend.dict import Config, Login
from pymap.concurrent import Event, Subsystem
from pymap.context import connection_exit
from pymap.imap import IMAPConnection
from pymap.imap.state import ConnectionState
from pymap.parsing.command.select import IdleCommand
from pymap.parsing.message import AppendMessage
from pymap.parsing.response import UntaggedResponse
from pymap.user import Passwords, UserMetadata
from pysasl.hashing import BuiltinHash

_CLOSE_SECONDS = 2.0


class _Config(Config):
    """pymap would ask the resolver for this machine's full name at every greeting: seconds on a machine without DNS."""

    @property
    def greeting(self) -> bytes:
        return b"The demo's mail server is ready"


class _State(ConnectionState):
    """pymap's IDLE waits for the next change alone: a mail that came since the last command would go unannounced."""

    async def receive_updates(self, cmd: IdleCommand, done: Event) -> Iterable[UntaggedResponse]:
        selected = await self.session.check_mailbox(self.selected)
        self._selected, untagged = selected.fork(cmd)
        return list(untagged) or await super().receive_updates(cmd, done)


class EmbeddedServer:
    """Listens on 127.0.0.1 after `start`; `deliver` adds a mail to INBOX, and whoever idles there is told."""

    def __init__(self, username: str, password: str) -> None:
        self._config = _Config(
            Namespace(passlib_cfg=None, proxy_protocol=None),
            demo_data=False,
            demo_user=username,
            demo_password=password,
            host="127.0.0.1",
            port=0,
            tls_enabled=False,  # so LOGIN needs no TLS: nothing leaves the loopback interface
            ssl_context=ssl.create_default_context(),  # unused; without one pymap looks for certificates
            hash_context=BuiltinHash(rounds=1000),  # a password new at each start, only in memory: 1 ms is enough
            cpu_subsystem=Subsystem.for_asyncio(),  # pymap's threads would each leave an event loop behind
        )
        self._login = Login(self._config)
        self._commands = self._config.commands
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._listening: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Listen; raises OSError when that is impossible."""
        hashed = await Passwords(self._config).hash_password(self._config.demo_password)
        user = UserMetadata(self._config, self._config.demo_user, password=hashed)
        await self._login.demo_user_identity.set(user)
        self._listening = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def deliver(self, content: bytes, received: datetime) -> None:
        """Put a mail into INBOX."""
        async with self._login.demo_user_identity.new_session() as session:
            await session.append_messages("INBOX", [AppendMessage(content, received)])

    async def has_reader(self) -> bool:
        """Tell whether somebody has INBOX selected."""
        async with self._login.demo_user_identity.new_session() as session:
            inbox = await session.mailbox_set.get_mailbox("INBOX")
            return inbox.selected_set.any_selected is not None

    async def close(self) -> None:
        """End every connection; leaves no task, thread or socket behind."""
        if self._listening is not None:
            self._listening.close()
        for writer in self._connections.values():
            writer.transport.abort()
        if self._connections:
            await asyncio.wait(self._connections, timeout=_CLOSE_SECONDS)

    # pymap's own command drops connections on Python 3.13, where nothing else holds on to them: here a dict does.
    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections[task] = writer
        task.add_done_callback(self._connections.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = IMAPConnection(self._commands, self._config, reader, writer, SocketInfoLocal(writer))
        try:
            async with AsyncExitStack() as sessions:
                connection_exit.set(sessions)
                await connection.run(_State(self._login, self._config))
        except OSError:  # the client went away in the middle of an answer
            pass
        finally:
            writer.transport.abort()
