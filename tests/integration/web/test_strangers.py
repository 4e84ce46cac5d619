"""The port is open to everybody: half requests, nonsense, crowds and readers that do not read, over real sockets."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from structlog.testing import capture_logs

from ops_mail.settings import Secret
from ops_mail.web import WebOptions, connections, people
from tests.integration.web.conftest import Open, Site

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Part: "
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
CONTENT = b"do-not-keep-this-anywhere"
LIMIT = 10.0


@asynccontextmanager
async def stranger(site: Site, sends: bytes = b"") -> AsyncIterator[Streams]:
    """A connection that has sent this much."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.server.port)
    writer.write(sends)
    try:
        yield reader, writer
    finally:
        writer.close()


async def rest(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the server ends the connection, which it has to."""
    async with asyncio.timeout(LIMIT):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


async def answer(reader: asyncio.StreamReader) -> bytes:
    """One answer of `/healthz` on a connection that stays open."""
    async with asyncio.timeout(LIMIT):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        return head + await reader.readexactly(int(length.partition(b":")[2]))


async def ask_for_ever(lazy: socket.socket, request: bytes) -> None:
    while True:
        await asyncio.get_running_loop().sock_sendall(lazy, request)


async def test_liveness_answers_while_500_connections_hold_half_a_request(open_site: Open) -> None:
    site = await open_site()
    with capture_logs() as lines:
        async with AsyncExitStack() as crowd:
            streams = [await crowd.enter_async_context(stranger(site, HALF)) for _ in range(500)]
            for _ in range(3):  # each time over a new connection, as a probe does
                async with stranger(site, WHOLE) as (reader, _):
                    assert (await answer(reader)).startswith(b"HTTP/1.1 200 ")
            (doorman,) = {c._doorman for c in site.server._runner.server.connections}  # type: ignore[union-attr]  # it runs
            assert doorman.connections <= connections.CONNECTION_LIMIT
            assert await rest(streams[0][0]) == b"", "who has waited longest had to go"
    told = Counter(line["event"] for line in lines)
    assert set(told) == {"http_connections_crowded"}
    assert told["http_connections_crowded"] <= 9


async def test_a_request_that_trickles_in_is_cut_off(open_site: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    site = await open_site()
    with capture_logs() as lines:
        async with stranger(site, HALF) as (reader, writer):
            ended = asyncio.create_task(rest(reader))
            while not ended.done():
                writer.write(b"x")
                await asyncio.sleep(0.02)
            assert await ended == b""
        async with stranger(site) as (reader, _):
            assert await rest(reader) == b"", "nothing at all is too slow as well"
    assert [line["event"] for line in lines] == ["http_request_too_slow"], "silence is nothing to tell of"


async def test_a_later_request_has_its_own_time(open_site: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    site = await open_site()
    async with stranger(site, WHOLE) as (reader, writer):
        assert (await answer(reader)).startswith(b"HTTP/1.1 200 ")
        await asyncio.sleep(0.5)  # an idle connection may stay
        writer.write(WHOLE)
        assert (await answer(reader)).startswith(b"HTTP/1.1 200 ")
        writer.write(HALF)
        assert await rest(reader) == b""


async def test_half_a_request_right_behind_a_whole_one_ends_as_an_idle_connection_does(
    open_site: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "KEEP_ALIVE_SECONDS", 0.2)
    site = await open_site()
    async with stranger(site, WHOLE + HALF) as (reader, _):
        assert (await answer(reader)).startswith(b"HTTP/1.1 200 ")
        assert await rest(reader) == b""


@pytest.mark.parametrize(
    "sends",
    [
        b"GET /" + CONTENT * 1000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX-Long: " + CONTENT * 1000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + CONTENT + b" no colon\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (n, CONTENT) for n in range(1000)) + b"\r\n",
        b"GET /" + CONTENT + b" HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + CONTENT,
        b"SSH-2.0-" + CONTENT + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\nX-A: " + CONTENT + b"\r\n\r\n",
        b"GET http://[" + CONTENT + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["path", "header", "no colon", "headers", "version", "tls", "ssh", "length", "address"],
)
async def test_nonsense_is_refused_shortly_and_its_bytes_go_nowhere(
    open_site: Open, sends: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    site = await open_site()
    with capture_logs() as lines:
        for _ in range(4):
            async with stranger(site, sends) as (reader, _):
                text = await rest(reader)
                assert CONTENT not in text
                assert b"aiohttp" not in text
                assert text == b"" or text.startswith(b"HTTP/1.0 400 ")
    assert [line["event"] for line in lines] == ["http_request_malformed"] * 3
    assert [line["times"] for line in lines] == [1, 2, 4]
    assert CONTENT.decode() not in repr(lines) + caplog.text
    assert [record.name for record in caplog.records if record.name.startswith("aiohttp")] == []


async def test_a_body_that_does_not_come_is_not_waited_for(open_site: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "_BODY_SECONDS", 0.1)
    monkeypatch.setattr(connections, "LINGERING_SECONDS", 0.1)
    site = await open_site(WebOptions(token=Secret("TOKEN", value="correct horse battery")))
    head = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    async with stranger(site, head + b"Content-Length: 30\r\n\r\ntoken=") as (reader, _):
        assert (await rest(reader)).startswith(b"HTTP/1.1 408 ")


async def test_a_reader_that_does_not_read_is_let_go(open_site: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.2)
    site = await open_site()
    loop = asyncio.get_running_loop()
    with capture_logs() as lines, socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.setblocking(False)
        await loop.sock_connect(lazy, ("127.0.0.1", site.server.port))
        request = b"GET /static/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
        asking = asyncio.create_task(ask_for_ever(lazy, request))
        with pytest.raises(ConnectionError):  # the server has had enough
            await asyncio.wait_for(asking, LIMIT)
    assert [line["event"] for line in lines] == ["http_reader_too_slow"]


async def test_a_fault_of_ours_is_told_once_and_answered_without_its_text(open_site: Open) -> None:
    site = await open_site()
    with capture_logs() as lines, pytest.MonkeyPatch.context() as patch:
        patch.setattr(site.status, "mailboxes", None)  # what no code should ever do
        assert await site.text("readyz", 500) == "500\n"
    (line,) = lines
    assert line["event"] == "http_request_failed"
    assert isinstance(line["exc_info"], TypeError)
    assert await site.json("healthz")
