"""The fault proxy does what its rules say, on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.faults.proxy import TO_CLIENT, TO_SERVER, Connection, FaultProxy, Rule, cutting
from tests.leaks import holdings

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class LineServer:
    """Greets, then answers each line with `ok <line>`; `BIG` is answered with a literal of 1,000 bytes."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.ends: list[str] = []  # how each connection ended, as the server saw it
        self._ended = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK hello\r\n")
        try:
            while line := await reader.readline():
                self.received.append(line)
                literal = b"* {1000}\r\n" + b"+ idling\r\n" * 100 if line == b"BIG\r\n" else b""
                writer.write(literal + b"ok " + line)
            self.ends.append("end")
        except ConnectionResetError:
            self.ends.append("reset")
        finally:
            self._ended.set()
            writer.close()

    async def ended(self) -> list[str]:
        async with asyncio.timeout(5):
            await self._ended.wait()
        return self.ends


@pytest.fixture
async def server() -> AsyncIterator[tuple[LineServer, int]]:
    line_server = LineServer()
    listening = await asyncio.start_server(line_server.serve, "127.0.0.1", 0)
    yield line_server, listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()


@pytest.fixture
async def proxy(server: tuple[LineServer, int]) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(("127.0.0.1", server[1])) as faulty:
        yield faulty


@asynccontextmanager
async def connected(proxy: FaultProxy) -> AsyncIterator[Streams]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@asynccontextmanager
async def greeted(proxy: FaultProxy) -> AsyncIterator[Streams]:
    async with connected(proxy) as (reader, writer):
        assert await line_of(reader) == b"* OK hello\r\n"
        yield reader, writer


async def line_of(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(5):
        return await reader.readline()


async def ask(streams: Streams, line: bytes) -> bytes:
    streams[1].write(line)
    return await line_of(streams[0])


async def is_silent(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(0.2):
            return not await reader.read(1) and False
    except TimeoutError:
        return True


async def test_without_a_fault_everything_passes_and_a_clean_end_stays_clean(
    server: tuple[LineServer, int], proxy: FaultProxy
) -> None:
    async with greeted(proxy) as (reader, writer):
        assert await ask((reader, writer), b"A\r\n") == b"ok A\r\n"
        writer.write_eof()
        assert await line_of(reader) == b""
    assert await server[0].ended() == ["end"]
    assert server[0].received == [b"A\r\n"]


async def test_reset_breaks_both_sides(server: tuple[LineServer, int], proxy: FaultProxy) -> None:
    async with greeted(proxy) as (reader, _):
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            await line_of(reader)
    assert await server[0].ended() == ["reset"]


async def test_refuse_turns_away_new_connections_leaves_open_ones_and_accept_takes_the_same_port_again(
    proxy: FaultProxy,
) -> None:
    port = proxy.port
    async with greeted(proxy) as streams:
        await proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert await ask(streams, b"A\r\n") == b"ok A\r\n"
        await proxy.accept()
        assert proxy.port == port
        async with greeted(proxy) as others:
            assert await ask(others, b"B\r\n") == b"ok B\r\n"


async def test_freeze_silences_what_is_open_while_new_connections_work_and_thaw_passes_on_what_was_held(
    proxy: FaultProxy,
) -> None:
    async with greeted(proxy) as (reader, writer):
        proxy.freeze()
        writer.write(b"A\r\n")
        async with greeted(proxy) as others:
            assert await ask(others, b"B\r\n") == b"ok B\r\n"
        assert await is_silent(reader)
        proxy.thaw()
        assert await line_of(reader) == b"ok A\r\n"


async def test_a_frozen_connection_hides_that_the_client_has_gone(
    server: tuple[LineServer, int], proxy: FaultProxy
) -> None:
    async with greeted(proxy) as (_, writer):
        proxy.freeze()
        writer.write_eof()
        await asyncio.sleep(0.1)
        assert server[0].ends == []
    proxy.reset()
    assert await server[0].ended() == ["reset"]


async def test_frozen_one_way_the_server_still_hears_the_client(
    server: tuple[LineServer, int], proxy: FaultProxy
) -> None:
    async with greeted(proxy) as (reader, writer):
        next(iter(proxy.connections)).freeze(TO_CLIENT)
        writer.write(b"A\r\n")
        assert await is_silent(reader)
        assert server[0].received == [b"A\r\n"]


@pytest.mark.parametrize(("after", "seen"), [(0, b""), (5, b"* OK "), (12, b"* OK hello\r\n")])
async def test_a_connection_is_cut_after_so_many_bytes_to_the_client(
    proxy: FaultProxy, after: int, seen: bytes
) -> None:
    proxy.on_connect = cutting(TO_CLIENT, after)
    async with connected(proxy) as (reader, writer):
        async with asyncio.timeout(5):
            assert await reader.readexactly(after) == seen
        writer.write(b"A\r\n")
        with pytest.raises(ConnectionResetError):
            await line_of(reader)


async def test_a_connection_is_cut_after_so_many_bytes_to_the_server(
    server: tuple[LineServer, int], proxy: FaultProxy
) -> None:
    proxy.on_connect = cutting(TO_SERVER, 4)
    async with greeted(proxy) as (reader, writer):
        writer.write(b"A\r\nB\r\n")
        assert await server[0].ended() == ["reset"]
        with pytest.raises(ConnectionResetError):
            await reader.read()
    assert server[0].received == [b"A\r\n"]


async def test_delay_holds_every_piece(proxy: FaultProxy) -> None:
    async with greeted(proxy) as streams:
        proxy.delay = 0.1
        start = time.monotonic()
        assert await ask(streams, b"A\r\n") == b"ok A\r\n"
        assert time.monotonic() - start >= 0.2


async def test_a_greeting_that_never_comes(proxy: FaultProxy) -> None:
    proxy.on_connect = Connection.freeze
    async with connected(proxy) as (reader, _):
        assert await is_silent(reader)


async def test_a_line_is_injected_before_and_after_and_another_one_rewritten(proxy: FaultProxy) -> None:
    proxy.add(Rule(TO_CLIENT, rb"^ok A", before=b"* 1 EXISTS\r\n", after=b"* 2 EXISTS\r\n"))
    proxy.add(Rule(TO_CLIENT, rb"^ok B", replace=b"NO B\r\n"))
    proxy.add(Rule(TO_SERVER, rb"^C", replace=b""))
    async with greeted(proxy) as (reader, writer):
        writer.write(b"A\r\nB\r\nC\r\nD\r\n")
        lines = [await line_of(reader) for _ in range(5)]
    assert lines == [b"* 1 EXISTS\r\n", b"ok A\r\n", b"* 2 EXISTS\r\n", b"NO B\r\n", b"ok D\r\n"]


async def test_a_rule_fires_at_the_nth_match_only_and_nth_0_means_each(proxy: FaultProxy) -> None:
    second = proxy.add(Rule(TO_CLIENT, rb"^ok", nth=2, replace=b"NO\r\n"))
    each = proxy.add(Rule(TO_CLIENT, rb"^ok C", nth=0, before=b"* C\r\n"))
    async with greeted(proxy) as (reader, writer):
        writer.write(b"A\r\nB\r\nC\r\nC\r\n")
        lines = [await line_of(reader) for _ in range(6)]
    assert lines == [b"ok A\r\n", b"NO\r\n", b"* C\r\n", b"ok C\r\n", b"* C\r\n", b"ok C\r\n"]
    assert (second.matches, each.matches) == (4, 2)


async def test_a_hook_runs_before_its_line_is_passed_on(server: tuple[LineServer, int], proxy: FaultProxy) -> None:
    received_at_hook: list[list[bytes]] = []

    async def hook(connection: Connection) -> None:
        await asyncio.sleep(0.1)
        received_at_hook.append(list(server[0].received))
        connection.inject(TO_CLIENT, b"* now\r\n")

    rule = proxy.add(Rule(TO_SERVER, rb"^A", hook=hook))
    async with greeted(proxy) as (reader, writer):
        assert await ask((reader, writer), b"A\r\n") == b"* now\r\n"
        assert await line_of(reader) == b"ok A\r\n"
    assert received_at_hook == [[]]
    assert rule.fired.is_set()


async def test_a_request_is_executed_but_its_answer_is_lost(server: tuple[LineServer, int], proxy: FaultProxy) -> None:
    proxy.add(Rule(TO_SERVER, rb"COMMIT", then=cutting(TO_CLIENT, 0)))
    async with greeted(proxy) as (reader, writer):
        writer.write(b"COMMIT\r\n")
        with pytest.raises(ConnectionResetError):
            await line_of(reader)
    assert server[0].received == [b"COMMIT\r\n"]


async def test_a_literal_is_never_matched_and_can_be_cut_inside(proxy: FaultProxy) -> None:
    inside = proxy.add(Rule(TO_CLIENT, rb"\+ idling", nth=0, replace=b"matched"))
    cut = proxy.add(Rule(TO_CLIENT, rb"\{1000\}", nth=2, then=cutting(TO_CLIENT, 300)))
    async with greeted(proxy) as (reader, writer):
        writer.write(b"BIG\r\n")
        async with asyncio.timeout(5):
            assert await reader.readexactly(1010 + 8) == b"* {1000}\r\n" + b"+ idling\r\n" * 100 + b"ok BIG\r\n"
        writer.write(b"BIG\r\n")
        async with asyncio.timeout(5):
            assert len(await reader.readexactly(310)) == 310
        with pytest.raises(ConnectionResetError):
            await line_of(reader)
    assert inside.matches == 0
    assert cut.fired.is_set()


async def test_without_lines_each_chunk_is_matched_as_it_came(server: tuple[LineServer, int]) -> None:
    async with FaultProxy(("127.0.0.1", server[1]), lines=False) as proxy:
        rule = proxy.add(Rule(TO_SERVER, rb"\x03COMMIT", then=Connection.reset))
        async with greeted(proxy) as (reader, writer):
            writer.write(b"\x07\x00\x00\x00\x03COMMIT")  # no line end anywhere
            with pytest.raises(ConnectionResetError):
                await line_of(reader)
        assert rule.fired.is_set()


async def test_a_server_that_is_down_shows_as_a_reset(server: tuple[LineServer, int]) -> None:
    async with FaultProxy(("127.0.0.1", 1)) as proxy, connected(proxy) as (reader, _):
        with pytest.raises(ConnectionResetError):
            await line_of(reader)


async def test_leaving_ends_frozen_connections_too(server: tuple[LineServer, int]) -> None:
    async with FaultProxy(("127.0.0.1", server[1])) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await line_of(reader) == b"* OK hello\r\n"
        proxy.freeze()
    with pytest.raises(ConnectionResetError):
        await line_of(reader)
    writer.transport.abort()
    assert await server[0].ended() == ["reset"]


async def test_a_proxy_that_ends_while_clients_come_and_go_leaves_no_socket() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()

    async def come_and_go(port: int) -> None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"x")
            await asyncio.sleep(random.uniform(0, 0.002))
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    before = holdings().sockets
    gc.disable()  # it would hide what is left
    try:
        for _ in range(40):
            async with FaultProxy(("127.0.0.1", server.sockets[0].getsockname()[1]), lines=False) as proxy:
                clients = [asyncio.create_task(come_and_go(proxy.port)) for _ in range(5)]
                await asyncio.sleep(random.uniform(0, 0.003))
            await asyncio.gather(*clients)
        deadline = time.monotonic() + 2
        while (left := holdings().sockets - before) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        assert not left
    finally:
        gc.enable()
        server.close()
