r"""A small IMAP server whose every answer can be replaced: for servers that misbehave. Real sockets, the test's loop.

server = ScriptedImap({1: b"Subject: hi\\r\\n\\r\\n"})
server.on["UID FETCH"] = answer  # async def answer(peer: Peer, command: ReceivedCommand) -> None
async with server: ...  # server.port
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

_LITERAL = re.compile(rb"\{(\d+)(\+?)\}$")
_PARTIAL = re.compile(r"BODY\.PEEK\[(HEADER)?\](?:<(\d+)\.(\d+)>)?")
_TWO_WORDS = {"UID"}


@dataclass(frozen=True)
class ReceivedCommand:
    """A command as it came: `name` in upper case (`UID FETCH`), `arguments` the rest of the line, literals included."""

    tag: str
    name: str
    arguments: str
    line: bytes


@dataclass
class Peer:
    """One connection, seen from the server."""

    server: ScriptedImap
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    selected: bool = False
    identified: bool = False
    authenticated: bool = False
    idle_tag: str | None = None

    async def send(self, *lines: bytes) -> None:
        """The lines, each with CRLF, in one segment; or cut into pieces of `server.cut` bytes."""
        await self.send_raw(b"".join(line + b"\r\n" for line in lines))

    async def send_raw(self, data: bytes) -> None:
        cut = self.server.cut or len(data) or 1
        for start in range(0, len(data), cut):
            self.writer.write(data[start : start + cut])
            await self.writer.drain()
            if self.server.cut:
                await asyncio.sleep(0)  # the client reads it as a chunk of its own, as far as the kernel allows

    async def ok(self, command: ReceivedCommand, text: str = "done") -> None:
        await self.send(f"{command.tag} OK {text}".encode())

    async def no(self, command: ReceivedCommand, text: str) -> None:
        await self.send(f"{command.tag} NO {text}".encode())

    async def bad(self, command: ReceivedCommand, text: str) -> None:
        await self.send(f"{command.tag} BAD {text}".encode())

    async def line(self) -> bytes:
        """The next line without CRLF; raises ConnectionError at the end."""
        line = await self.reader.readline()
        if not line:
            raise ConnectionResetError
        return line.rstrip(b"\r\n")

    def cut_off(self) -> None:
        """Resets the connection (RST), as a firewall or a crashed machine would."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Handler = Callable[[Peer, ReceivedCommand], Awaitable[None]]


@dataclass
class ScriptedImap:
    """`mails` by UID; `sizes` overrides what RFC822.SIZE says. `greeting` None: it never comes.

    `on` replaces the answer to a command by name; `received` collects every line that clients sent.
    """

    mails: dict[int, bytes] = field(default_factory=dict)
    capabilities: str = "IMAP4rev1 IDLE ID UIDPLUS MOVE"
    greeting: bytes | None = b"* OK scripted"
    sizes: dict[int, int] = field(default_factory=dict)
    uid_validity: int = 7
    cut: int = 0
    tls: ssl.SSLContext | None = None
    on: dict[str, Handler] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 0
    received: list[bytes] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self.host, 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def commands(self, name: str) -> list[bytes]:
        """The lines clients sent for this command, without tags."""
        return [
            line.partition(b" ")[2]
            for line in self.received
            if line.partition(b" ")[2].upper().startswith(name.encode())
        ]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until `condition` holds; a hang is ended by the test's own time limit."""
        while not condition():  # there is no event for the state of the client
            await asyncio.sleep(0.005)

    def add(self, uid: int, raw: bytes) -> None:
        """New mail, announced to every client that idles."""
        self.mails[uid] = raw
        for peer in self.peers:
            if peer.idle_tag is not None and not peer.writer.is_closing():
                peer.writer.write(f"* {len(self.mails)} EXISTS\r\n".encode())

    # --- a connection

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        peer = Peer(self, reader, writer)
        self.peers.append(peer)
        try:
            if self.greeting is None:
                await asyncio.Event().wait()
            await peer.send(self.greeting or b"")
            while True:
                await self._one(peer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or the test ends
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)

    async def _one(self, peer: Peer) -> None:
        line = await peer.line()
        self.received.append(line)
        while found := _LITERAL.search(line):
            if not found[2]:
                await peer.send(b"+ go on")
            line += await peer.reader.readexactly(int(found[1]))
            line += await peer.line()
        tag, _, rest = line.decode("utf-8", "replace").partition(" ")
        name, _, arguments = rest.partition(" ")
        if name.upper() in _TWO_WORDS:
            second, _, arguments = arguments.partition(" ")
            name = f"{name} {second}"
        command = ReceivedCommand(tag, name.upper(), arguments, line)
        handler = self.on.get(command.name) or _DEFAULTS.get(command.name)
        if handler is None:
            await peer.bad(command, "unknown command")
        else:
            await handler(peer, command)

    # --- mails

    def sequence(self, uid: int) -> int:
        return sorted(self.mails).index(uid) + 1

    def chosen(self, uid_set: str) -> list[int]:
        """The UIDs of a set; `*` is the highest, whichever side of a range it is on (RFC 3501 section 9)."""
        uids = sorted(self.mails)
        if not uids:
            return []
        found: set[int] = set()
        for piece in uid_set.split(","):
            first, _, last = piece.partition(":")
            ends = [uids[-1] if end == "*" else int(end) for end in (first, last or first)]
            found.update(uid for uid in uids if min(ends) <= uid <= max(ends))
        return sorted(found)

    def fetch_line(self, uid: int, items: str) -> bytes:
        """One FETCH response, with whatever of the usual items was asked for."""
        raw = self.mails[uid]
        parts = [f"UID {uid}".encode()]
        if "RFC822.SIZE" in items:
            parts.append(f"RFC822.SIZE {self.sizes.get(uid, len(raw))}".encode())
        if "INTERNALDATE" in items:
            parts.append(b'INTERNALDATE "07-Feb-2024 10:20:30 +0800"')
        if "FLAGS" in items:
            parts.append(rb"FLAGS (\Seen)")
        for header, offset, count in _PARTIAL.findall(items):
            content = raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if header else raw
            origin = f"<{offset}>" if offset else ""
            if offset:
                content = content[int(offset) : int(offset) + int(count)]
            parts.append(f"BODY[{header}]{origin} {{{len(content)}}}\r\n".encode() + content)
        return f"* {self.sequence(uid)} FETCH (".encode() + b" ".join(parts) + b")"


async def _capability(peer: Peer, command: ReceivedCommand) -> None:
    await peer.send(f"* CAPABILITY {peer.server.capabilities}".encode(), f"{command.tag} OK done".encode())


async def _login(peer: Peer, command: ReceivedCommand) -> None:
    peer.authenticated = True
    await peer.ok(command, "logged in")


async def _id(peer: Peer, command: ReceivedCommand) -> None:
    peer.identified = True
    await peer.send(b"* ID NIL", f"{command.tag} OK done".encode())


async def _select(peer: Peer, command: ReceivedCommand) -> None:
    peer.selected = True
    await peer.send(
        rb"* FLAGS (\Seen \Deleted)",
        f"* {len(peer.server.mails)} EXISTS".encode(),
        b"* 0 RECENT",
        f"* OK [UIDVALIDITY {peer.server.uid_validity}] valid".encode(),
        f"{command.tag} OK [READ-WRITE] selected".encode(),
    )


async def _done(peer: Peer, command: ReceivedCommand) -> None:
    await peer.ok(command)


async def _noop(peer: Peer, command: ReceivedCommand) -> None:
    lines: Iterable[bytes] = [f"* {len(peer.server.mails)} EXISTS".encode()] if peer.selected else []
    await peer.send(*lines, f"{command.tag} OK done".encode())


async def _uid_fetch(peer: Peer, command: ReceivedCommand) -> None:
    uid_set, _, items = command.arguments.partition(" ")
    lines = [peer.server.fetch_line(uid, items) for uid in peer.server.chosen(uid_set)]
    await peer.send(*lines, f"{command.tag} OK done".encode())


async def _fetch(peer: Peer, command: ReceivedCommand) -> None:
    number, _, items = command.arguments.partition(" ")
    uid = sorted(peer.server.mails)[int(number) - 1]
    await peer.send(peer.server.fetch_line(uid, items), f"{command.tag} OK done".encode())


async def _idle(peer: Peer, command: ReceivedCommand) -> None:
    peer.idle_tag = command.tag
    await peer.send(b"+ idling")
    try:
        while (await peer.line()).upper() != b"DONE":
            pass
    finally:
        peer.idle_tag = None
    await peer.ok(command, "idle over")


async def _logout(peer: Peer, command: ReceivedCommand) -> None:
    await peer.send(b"* BYE see you", f"{command.tag} OK bye".encode())
    raise ConnectionResetError


_DEFAULTS: Mapping[str, Handler] = {
    "CAPABILITY": _capability,
    "LOGIN": _login,
    "AUTHENTICATE": _login,
    "ID": _id,
    "SELECT": _select,
    "NOOP": _noop,
    "STATUS": _done,
    "LIST": _done,
    "FETCH": _fetch,
    "UID FETCH": _uid_fetch,
    "UID STORE": _done,
    "UID COPY": _done,
    "UID MOVE": _done,
    "UID EXPUNGE": _done,
    "APPEND": _done,
    "IDLE": _idle,
    "LOGOUT": _logout,
}
