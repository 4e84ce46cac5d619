"""aioimaplib's protocol, made fit for unattended work. The only module that knows aioimaplib's insides (2.0.3, pinned).

What stock aioimaplib does and why it is replaced here:
- `data_received` recurses once a line: about 1,000 short lines in one chunk end in RecursionError and a hanging FETCH.
- `connection_lost` fails nothing: pending commands and IDLE hang for ever.
- `_response_done` loses an EXISTS that comes in the same segment as the tagged OK of DONE.
- `_untagged_response` drops an EXISTS that arrives in or between other commands, and deletes every `* ` inside a line.
- `_continuation` cannot answer the second `+` of a refused token, so the login hangs.
- `send` formats every line, passwords and tokens among them, for a debug log.
What is kept: tags, states, the table of commands, `Command` and `execute`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from aioimaplib.aioimaplib import (
    AUTH,
    NONAUTH,
    SELECTED,
    Command,
    IMAP4ClientProtocol,
)

from ops_mail.errors import Failure
from ops_mail.imap.view import FolderView
from ops_mail.imap.wire import Response, ResponseReader, WireError

__all__ = ["AUTH", "NONAUTH", "SELECTED", "ConnectionFailed", "SessionCommand", "SessionProtocol"]

MAX_ANSWERS = 4
MAX_COLLECTED_BYTES = 32 * 1024 * 1024
"""No command here asks for a fraction of it: a server that sends more lies about sizes, or does not stop."""

_RESPONSE_BYTES = 200
"""What Python adds to each response: without it a flood of short lines would take thirty times the limit."""

# aioimaplib logs tokens at DEBUG (promise P11). A filter outlives later logging configuration, a level might not.
_library_log = logging.getLogger("aioimaplib.aioimaplib")
_library_log.addFilter(lambda _: False)
_library_log.setLevel(logging.CRITICAL + 1)


class ConnectionFailed(Exception):
    """The connection is of no more use. `text` is the server's own, or says what happened."""

    def __init__(self, failure: Failure, text: str) -> None:
        super().__init__(text)
        self.failure = failure
        self.text = text


class SessionCommand(Command):  # type: ignore[misc]  # its base has no types
    """One command and the untagged responses that came while it ran.

    `answers` are the lines sent on each `+`; when they are used up an empty line is sent, which ends a refused SASL
    exchange (RFC 3501 section 6.2.2, XOAUTH2 of Google and Microsoft). An answer of bytes is sent with a CRLF after it.
    """

    def __init__(
        self, name: str, tag: str, *args: str, prefix: str | None = None, answers: Iterable[bytes] = (), collect: bool
    ) -> None:
        super().__init__(name, tag, *args, prefix=prefix)
        self.answers = list(answers)
        self.answers_sent = 0
        self.collect = collect
        self.responses: list[Response] = []
        self.collected_bytes = 0
        self.continued = asyncio.Event()
        self.result = ""
        self.text = b""

    def __str__(self) -> str:
        return str(super().__repr__())

    def __repr__(self) -> str:
        return f"<{self.name} {self.tag}>"  # arguments may be secret

    def take(self, response: Response) -> None:
        """One more untagged response. Raises WireError when they become too many to keep."""
        self.collected_bytes += _RESPONSE_BYTES
        self.collected_bytes += sum(map(len, response.texts)) + sum(map(len, filter(None, response.literals)))
        if self.collected_bytes > MAX_COLLECTED_BYTES:
            raise WireError("far more than it was asked for")
        self.responses.append(response)

    def finish(self, result: str, text: bytes) -> None:
        """The tagged response is here."""
        self.result, self.text = result, text
        self.forget_secrets()
        self.close(text, result)

    def fail(self, error: ConnectionFailed) -> None:
        """The tagged response will never come."""
        self.forget_secrets()
        self._exception = error
        self.close(b"", "KO")

    def forget_secrets(self) -> None:
        self.args = ()
        self.answers = []


class SessionProtocol(IMAP4ClientProtocol):  # type: ignore[misc]  # its base has no types
    """One connection. The first thing that goes wrong is kept in `failure`; after it nothing is read or sent."""

    pending_sync_command: SessionCommand | None
    pending_async_commands: dict[str, SessionCommand]

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.reader = ResponseReader()
        self.view = FolderView()
        self.failure: ConnectionFailed | None = None
        self.greeting: asyncio.Future[bytes] = loop.create_future()
        self.closed = asyncio.Event()
        self.hinted = asyncio.Event()
        self.upgrading = False
        self.leaving = False
        self.on_bytes: Callable[[int], None] | None = None

    # --- called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._given_up():  # while the handshake ran
            self.transport.abort()

    def data_received(self, d: bytes) -> None:
        if self.failure is not None:
            return
        if self.on_bytes is not None:
            self.on_bytes(len(d))
        try:
            self.reader.push(d)
            while not self._given_up() and (response := self.reader.next()) is not None:
                self._dispatch(response)
        except WireError as error:
            self.fail(Failure.PROTOCOL, f"the server sent {error}")

    def eof_received(self) -> None:
        self.fail(Failure.LOST, "the server closed the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        self.fail(Failure.LOST, f"the connection broke ({exc})" if exc else "the connection was closed")

    # --- called by the session

    def fail(self, failure: Failure, text: str) -> None:
        """Ends the connection at once and wakes everybody who waits on it. The first cause wins."""
        if self.failure is not None:
            return
        self.failure = ConnectionFailed(failure, text)
        if not self.greeting.done():
            self.greeting.set_result(b"")
        command = self._take_pending()
        if command is not None:
            command.fail(self.failure)
        self.hinted.set()
        if self.transport is not None:
            self.transport.abort()

    def _given_up(self) -> bool:
        return self.failure is not None

    def command(
        self, name: str, *args: str, prefix: str | None = None, answers: Iterable[bytes] = (), collect: bool = True
    ) -> SessionCommand:
        """A command ready for `execute`. Raises ValueError when an argument holds NUL, CR or LF."""
        return SessionCommand(name, self.new_tag(), *args, prefix=prefix, answers=answers, collect=collect)

    def send(self, line: str, scrub: str | None = None) -> None:  # noqa: ARG002  # the base's signature
        self.transport.write(line.encode() + b"\r\n")

    def clear_hint(self) -> None:
        self.view.clear_hint()
        self.hinted.clear()

    # --- responses

    def _dispatch(self, response: Response) -> None:
        line = response.first
        if not self.greeting.done():
            if not line.startswith(b"* "):
                raise WireError("something else than an IMAP greeting")
            self.greeting.set_result(line)
        elif self.upgrading:
            # Injected in plain text before the TLS handshake (CVE-2011-0411 and its kin): must not be believed.
            raise WireError("more text after it had agreed to STARTTLS")
        elif line.startswith(b"* "):
            self._untagged_response(response)
        elif line.startswith(b"+"):
            self._continuation(line)
        elif line or response.literals:
            self._response_done(line)

    def _untagged_response(self, response: Response) -> None:
        line = response.first
        if line[:5].upper() == b"* BYE" and not self.leaving:
            self.fail(Failure.BYE, line[5:].strip().decode("utf-8", "replace"))
            return
        if self.view.counts(line):  # nobody asks a command for them, and an EXPUNGE storm is a million lines
            if self.view.note(line, self.loop.time()):
                self.hinted.set()
            return
        command = self._pending()
        if command is not None and command.collect:
            command.take(response)

    def _continuation(self, line: bytes) -> None:  # noqa: ARG002  # the base's signature
        command = self._pending()
        if command is None:
            raise WireError("a continuation that nothing had asked for")
        command.continued.set()
        if command.name == "IDLE":
            return
        if command.answers_sent > MAX_ANSWERS:
            raise WireError("one continuation after the other")
        answer = command.answers.pop(0) if command.answers else b""
        command.answers_sent += 1
        self.transport.writelines([answer, b"\r\n"])

    def _response_done(self, line: bytes) -> None:
        tag, _, rest = line.partition(b" ")
        result, _, text = rest.partition(b" ")
        command = self._pending()
        if command is None or tag != command.tag.encode() or result.upper() not in (b"OK", b"NO", b"BAD"):
            raise WireError("a line that answers nothing that was asked")
        if command.name == "STARTTLS" and result.upper() == b"OK":
            self.upgrading = True
            if self.transport.is_reading():
                self.transport.pause_reading()
            if not self.reader.is_empty:
                raise WireError("more text after it had agreed to STARTTLS")
        self._take_pending()
        command.finish(result.upper().decode(), text)

    def _pending(self) -> SessionCommand | None:
        """The one command that runs: the session sends one at a time."""
        return self.pending_sync_command or next(iter(self.pending_async_commands.values()), None)

    def _take_pending(self) -> SessionCommand | None:
        command = self._pending()
        self.pending_sync_command = None
        self.pending_async_commands.clear()
        return command
