"""Commands over one connection: one at a time, each with a time limit, every failure translated once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ops_mail.core.mailbox import VARIABLES, MailboxSource
from ops_mail.errors import Failure, ImapError
from ops_mail.imap.errors import Refused
from ops_mail.imap.protocol import ConnectionFailed, SessionProtocol
from ops_mail.imap.wire import DEFAULT_LITERAL_LIMIT, Response
from ops_mail.settings import redact
from ops_mail.settings.redaction import MASK

# A slow line may take longer than one time limit for one batch: the limit is renewed while data really flow, so that
# it bounds silence, not size. A server that trickles `* OK Still here` does not count as flowing.
PROGRESS_BYTES = 4096
MAX_RENEWALS = 20

SERVER_TEXT_CHARS = 200


@dataclass(frozen=True, slots=True)
class Reply:
    """The tagged result (`OK`, `NO`, `BAD`), its text made safe to show, and the untagged responses before it."""

    result: str
    text: str
    responses: tuple[Response, ...]

    @property
    def ok(self) -> bool:
        return self.result == "OK"

    def has_code(self, code: str) -> bool:
        """True when the text carries the response code `[code …]` (RFC 3501 section 7.1)."""
        return self.text.upper().startswith((f"[{code}]", f"[{code} "))


class Channel:
    """The connection as the session uses it. After an error or a cancellation it refuses further use.

    `source`: how errors name the mailbox's settings.
    """

    def __init__(
        self, protocol: SessionProtocol, address: str, timeout_seconds: float, source: MailboxSource = VARIABLES
    ) -> None:
        self.protocol = protocol
        self.address = address
        self.timeout_seconds = timeout_seconds
        self.source = source
        self.lock = asyncio.Lock()
        self.on_life: Callable[[], None] = lambda: None
        self._secrets: list[str] = []

    @property
    def usable(self) -> bool:
        return self.protocol.failure is None

    def keep_secret(self, *secrets: str) -> None:
        """From now on these never show in a message, should a server echo them."""
        self._secrets += [secret for secret in secrets if secret]

    def abort(self, failure: Failure = Failure.LOST, text: str = "the session was dropped") -> None:
        """Cuts the connection without a farewell."""
        self.protocol.fail(failure, text)

    async def run(
        self,
        name: str,
        *args: str,
        prefix: str | None = None,
        answers: Iterable[bytes] = (),
        collect: bool = True,
        literal_limit: int = DEFAULT_LITERAL_LIMIT,
        what: str | None = None,
    ) -> Reply:
        """Sends one command and waits for its tagged response, NO and BAD included.

        Raises ImapError when the connection fails, ends or is silent for the time limit. A cancellation is passed on.
        """
        async with self.lock:
            self.raise_if_failed()
            command = self.protocol.command(name, *args, prefix=prefix, answers=answers, collect=collect)
            self.protocol.reader.literal_limit = literal_limit
            self.on_life()
            try:
                async with asyncio.timeout(self.timeout_seconds) as limit:
                    self.protocol.on_bytes = _Progress(limit, self.timeout_seconds, self.on_life)
                    await self.protocol.execute(command)
            except TimeoutError:
                raise self.timed_out(what or f"{prefix} {name}" if prefix else what or name) from None
            except ConnectionFailed as error:
                raise self.translated(error) from None
            except BaseException:  # cancellation above all: half a command makes the stream useless
                self.abort()
                raise
            finally:
                self.protocol.on_bytes = None
        return Reply(command.result, self.shown(command.text), tuple(command.responses))

    async def must(self, name: str, *args: str, what: str, prefix: str | None = None, collect: bool = True,
                   literal_limit: int = DEFAULT_LITERAL_LIMIT) -> Reply:  # fmt: skip
        """As `run`, and OK is due: anything else drops the connection and raises ImapError(PROTOCOL)."""
        reply = await self.run(name, *args, prefix=prefix, collect=collect, literal_limit=literal_limit)
        if not reply.ok:
            raise self.broken(f"{self.address} answered {reply.result} to {what}: {reply.text}")
        return reply

    async def may(self, name: str, *args: str, what: str, prefix: str | None = None, collect: bool = True,
                  literal_limit: int = DEFAULT_LITERAL_LIMIT, answers: Iterable[bytes] = ()) -> Reply:  # fmt: skip
        """As `must`, but a NO leaves the connection usable and raises Refused."""
        reply = await self.run(name, *args, prefix=prefix, collect=collect, literal_limit=literal_limit,
                               answers=answers)  # fmt: skip
        if reply.result == "NO":
            raise Refused(f"{self.address} refused {what}: {reply.text}")
        if not reply.ok:
            raise self.broken(f"{self.address} answered {reply.result} to {what}: {reply.text}")
        return reply

    def raise_if_failed(self) -> None:
        """Raises ImapError with the first cause when the connection is no longer usable."""
        if self.protocol.failure is not None:
            raise self.translated(self.protocol.failure)

    def broken(self, message: str) -> ImapError:
        """Drops the connection; the error to raise."""
        self.abort(Failure.PROTOCOL, message)
        return ImapError(Failure.PROTOCOL, message)

    def timed_out(self, what: str) -> ImapError:
        """Drops the connection; the error to raise."""
        message = f"{self.address} did not answer {what} in time; the connection is taken as dead"
        self.abort(Failure.TIMEOUT, message)
        return ImapError(Failure.TIMEOUT, message)

    def translated(self, error: ConnectionFailed) -> ImapError:
        """The ImapError for a failed connection."""
        text = self.shown(error.text.encode())
        if error.failure is Failure.BYE:
            return ImapError(Failure.BYE, f"{self.address} ended the session: {text or 'BYE'}")
        if self.address in text:
            return ImapError(error.failure, text)
        return ImapError(error.failure, f"{self.address}: {text}")

    def shown(self, text: bytes) -> str:
        """Text from the server as it may be shown: without secrets, one line, cut to 200 characters."""
        shown = text.decode("utf-8", "replace")
        for secret in self._secrets:
            shown = shown.replace(secret, MASK)
        shown = redact(shown)  # a server repeats a command as it came: quoted, or as a part of some base64
        shown = "".join(character if character.isprintable() else " " for character in shown)
        return shown if len(shown) <= SERVER_TEXT_CHARS else shown[: SERVER_TEXT_CHARS - 1] + "…"


class _Progress:
    """Renews a time limit while data flow."""

    def __init__(self, limit: asyncio.Timeout, seconds: float, on_life: Callable[[], None]) -> None:
        self._limit = limit
        self._on_life = on_life
        self._seconds = seconds
        self._bytes = 0
        self._renewals = 0

    def __call__(self, received: int) -> None:
        self._bytes += received
        if self._bytes < PROGRESS_BYTES or self._renewals >= MAX_RENEWALS or self._limit.expired():
            return
        loop = asyncio.get_running_loop()
        due = self._limit.when()
        if due is None or due - loop.time() > self._seconds / 2:
            return
        self._limit.reschedule(loop.time() + self._seconds)
        self._on_life()
        self._bytes = 0
        self._renewals += 1
