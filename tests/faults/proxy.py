r"""A TCP proxy that breaks connections the way networks and servers do: on purpose, at a chosen point, between the
listener and Dovecot, MariaDB or MySQL.

    async with FaultProxy(("127.0.0.1", dovecot.port)) as proxy:  # the listener connects to proxy.port
        proxy.freeze()  # what is open goes silent; new connections work
        proxy.reset()  # what is open is reset (RST)
        await proxy.refuse(); await proxy.accept()  # nobody listens; somebody does again, on the same port
        proxy.on_connect = cutting(TO_CLIENT, 500)  # each new connection is reset behind the server's 500th byte
        proxy.add(Rule(TO_CLIENT, rb"\+ idling", hook=append_a_mail))  # act exactly there, then pass the line on
        proxy.add(Rule(TO_SERVER, rb"COMMIT", then=cutting(TO_CLIENT, 0)))  # executed, but its answer is lost

For IMAP the stream is matched line by line and literals are never matched; with `lines=False` (MySQL's binary protocol)
each chunk is matched as it was received.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from tests.faults.pieces import Pieces


class Way(Enum):
    TO_SERVER = "to server"
    TO_CLIENT = "to client"


TO_SERVER, TO_CLIENT = Way.TO_SERVER, Way.TO_CLIENT


@dataclass
class Rule:
    """What happens when a line going `way` matches `pattern` for the `nth` time (0: each time)."""

    way: Way
    pattern: bytes
    nth: int = 1
    before: bytes = b""  # injected ahead of the line
    replace: bytes | None = None  # passed on instead of the line; b"" swallows it
    after: bytes = b""  # injected behind the line
    hook: Callable[[Connection], object] | None = None  # the line waits until this has returned, or what it awaits
    then: Callable[[Connection], None] | None = None  # once the line was passed on: Connection.reset, cutting(…), …
    matches: int = 0
    fired: asyncio.Event = field(default_factory=asyncio.Event)

    def hits(self, way: Way, line: bytes) -> bool:
        """Tell whether this line is the one, counting it."""
        if way is not self.way or re.search(self.pattern, line) is None:
            return False
        self.matches += 1
        return self.nth in (0, self.matches)


def cutting(way: Way, after: int) -> Callable[[Connection], None]:
    """Give a `then` or `on_connect` that resets the connection once `after` more bytes went `way`."""
    return lambda connection: connection.cut(way, after)


class Connection:
    """One client and its own connection to the server."""

    def __init__(self, proxy: FaultProxy, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.proxy = proxy
        self._writers = {TO_SERVER: server, TO_CLIENT: client}
        self._budget: dict[Way, int | None] = {TO_SERVER: None, TO_CLIENT: None}
        self._flowing = {TO_SERVER: asyncio.Event(), TO_CLIENT: asyncio.Event()}
        self.passed = {TO_SERVER: 0, TO_CLIENT: 0}
        self.thaw()

    def reset(self) -> None:
        """RST to both sides, at once."""
        for writer in self._writers.values():
            abort(writer)
        self.thaw()  # what waits frozen sees the end

    def close(self) -> None:
        """End both sides in good order (FIN)."""
        for writer in self._writers.values():
            writer.close()

    def freeze(self, *ways: Way) -> None:
        """Pass nothing on any more, one way or both: the connection stays open, as if a router had forgotten it."""
        for way in ways or tuple(Way):
            self._flowing[way].clear()

    def thaw(self) -> None:
        """Pass everything on again, what was held first."""
        for flowing in self._flowing.values():
            flowing.set()

    def cut(self, way: Way, after: int) -> None:
        """Reset the connection when more than `after` further bytes would go `way`; those that fit still do."""
        self._budget[way] = after

    def inject(self, way: Way, data: bytes) -> None:
        """Send bytes that the other side never sent."""
        self._writers[way].write(data)

    async def pump(self, way: Way, reader: asyncio.StreamReader) -> None:
        """Pass on what comes, until it ends or breaks; never raises for a broken connection."""
        pieces = Pieces()
        try:
            while data := await reader.read(65536):
                await self._flowing[way].wait()
                if self.proxy.delay:
                    await asyncio.sleep(self.proxy.delay)
                for piece, matchable in pieces.feed(data) if self.proxy.lines else [(data, True)]:
                    await self._pass_on(way, piece, self.proxy.matching(way, piece) if matchable else [])
            await self._flowing[way].wait()  # an end is not seen through a frozen connection either
            self._writers[way].write_eof()
        except (OSError, RuntimeError):  # reset by a side or by a fault; RuntimeError: written after close
            self.reset()

    async def _pass_on(self, way: Way, piece: bytes, rules: list[Rule]) -> None:
        for rule in rules:
            if rule.hook is not None and inspect.isawaitable(waiting := rule.hook(self)):
                await waiting
            piece = rule.before + (piece if rule.replace is None else rule.replace) + rule.after
        await self._flowing[way].wait()  # a hook, or the other way, may have frozen it
        await self._send(way, piece)
        for rule in rules:
            if rule.then is not None:
                rule.then(self)
            rule.fired.set()

    async def _send(self, way: Way, data: bytes) -> None:
        budget = self._budget[way]
        within = data if budget is None else data[:budget]
        self._writers[way].write(within)
        await self._writers[way].drain()
        self.passed[way] += len(within)
        if budget is not None:
            self._budget[way] = budget - len(within)
            if len(data) > budget:
                self.reset()


class FaultProxy:
    """Listens on 127.0.0.1 and passes every connection on to `target`; a context manager that leaves nothing behind."""

    def __init__(self, target: tuple[str, int], *, lines: bool = True) -> None:
        self.target = target
        self.lines = lines
        self.delay = 0.0  # seconds that each piece is held, either way
        self.on_connect: Callable[[Connection], None] | None = None
        self.connections: set[Connection] = set()  # those open now
        self.accepted = 0
        self.port = 0
        self.rules: list[Rule] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.accept()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()
        while self._tasks:  # one that was accepted a moment ago may begin only now
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0)

    def add(self, rule: Rule) -> Rule:
        """Put a rule in place for all connections and give it back, to wait for `fired`."""
        self.rules.append(rule)
        return rule

    def matching(self, way: Way, line: bytes) -> list[Rule]:
        """Give the rules that fire at this line."""
        return [rule for rule in self.rules if rule.hits(way, line)]

    async def accept(self) -> None:
        """Listen (again), on the same port as before."""
        if self._listener is None:
            self._listener = await asyncio.start_server(self._accepted, "127.0.0.1", self.port)
            self.port = self._listener.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Stop listening: a new connection is refused by the kernel. Open ones are left alone."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            await asyncio.sleep(0)  # the loop closes the socket in its next round

    def reset(self) -> None:
        """RST to every open connection."""
        for connection in self.connections:
            connection.reset()

    def freeze(self) -> None:
        """Silence every connection that is open now; new ones work."""
        for connection in self.connections:
            connection.freeze()

    def thaw(self) -> None:
        """Let all connections flow again."""
        for connection in self.connections:
            connection.thaw()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._listener is None:
            abort(writer)
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, client_reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            server_reader, server = await asyncio.open_connection(*self.target)
        except OSError:  # the server is down: the client sees its connection reset
            abort(client)
            return
        except asyncio.CancelledError:
            abort(client)
            raise
        connection = Connection(self, client, server)
        self.connections.add(connection)
        try:
            if self.on_connect is not None:
                self.on_connect(connection)
            await asyncio.gather(connection.pump(TO_SERVER, client_reader), connection.pump(TO_CLIENT, server_reader))
            connection.close()
        finally:
            self.connections.discard(connection)
            for writer in (client, server):
                if not writer.is_closing():
                    abort(writer)


def abort(writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN, dropping what is unsent."""
    sock = writer.get_extra_info("socket")
    if sock is not None and not writer.is_closing():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
