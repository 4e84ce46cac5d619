"""The embedded IMAP server, spoken to as any client would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from ops_mail.demo.server import EmbeddedServer

MAIL = b"Subject: one\r\n\r\nbody\r\n"
RECEIVED = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


class Client:
    """Says one command and reads to its end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def line(self) -> bytes:
        async with asyncio.timeout(5):
            return await self._reader.readline()

    async def rest(self) -> bytes:
        """What still comes until the connection ends, in whatever way."""
        try:
            async with asyncio.timeout(5):
                return await self._reader.read()
        except ConnectionResetError:
            return b""

    def send(self, line: bytes) -> None:
        self._writer.write(line + b"\r\n")

    async def ask(self, command: bytes) -> bytes:
        self.send(b"a " + command)
        answer = b""
        while True:
            line = await self.line()
            answer += line
            if line.startswith(b"a ") or not line:
                return answer

    def abort(self) -> None:
        self._writer.transport.abort()


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedServer]:
    embedded = EmbeddedServer("demo@example.org", "pass word")
    await embedded.start()
    yield embedded
    await embedded.close()


@pytest.fixture
async def client(server: EmbeddedServer) -> AsyncIterator[Client]:
    speaking = Client(*await asyncio.open_connection("127.0.0.1", server.port))
    assert (await speaking.line()).startswith(b"* OK")
    yield speaking
    speaking.abort()


async def test_a_wrong_password_is_refused(client: Client) -> None:
    assert b"a NO" in await client.ask(b'LOGIN demo@example.org "wrong"')


async def test_a_mail_that_is_delivered_is_announced_to_whoever_idles_and_keeps_its_bytes_and_date(
    server: EmbeddedServer, client: Client
) -> None:
    assert b"a OK" in await client.ask(b'LOGIN demo@example.org "pass word"')
    assert not await server.has_reader()
    assert b"* 0 EXISTS" in await client.ask(b"SELECT INBOX")
    assert await server.has_reader()
    client.send(b"a IDLE")
    assert (await client.line()).startswith(b"+")
    await server.deliver(MAIL, RECEIVED)
    assert await client.line() == b"* 1 EXISTS\r\n"
    client.send(b"DONE")
    while not (line := await client.line()).startswith(b"a OK"):
        assert line.startswith(b"* ")
    answer = await client.ask(b"UID FETCH 1:* (INTERNALDATE BODY.PEEK[])")
    assert MAIL in answer
    assert b'"02-Jan-2030 03:04:05 +0000"' in answer


async def test_a_mail_that_came_just_before_idle_is_announced_at_once(server: EmbeddedServer, client: Client) -> None:
    await client.ask(b'LOGIN demo@example.org "pass word"')
    await client.ask(b"SELECT INBOX")
    await server.deliver(MAIL, RECEIVED)
    client.send(b"a IDLE")
    assert (await client.line()).startswith(b"+")
    assert await client.line() == b"* 1 EXISTS\r\n"


async def test_closing_ends_connections_that_idle(server: EmbeddedServer, client: Client) -> None:
    await client.ask(b'LOGIN demo@example.org "pass word"')
    await client.ask(b"SELECT INBOX")
    client.send(b"a IDLE")
    assert (await client.line()).startswith(b"+")
    await server.close()
    assert await client.rest() == b""
