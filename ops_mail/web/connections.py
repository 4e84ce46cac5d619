"""How many connections there may be, and for how long one may keep the server waiting.

The port is often open to more than probes. Somebody who opens many connections and sends half a request on each must
not take liveness away: the one that has waited longest makes room for the newest.
"""

from __future__ import annotations

import asyncio

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from ops_mail.core.repeats import RepeatLimiter
from ops_mail.web.headers import own_headers

log = structlog.get_logger("ops_mail.web")

CONNECTION_LIMIT = 256
HEAD_SECONDS = 10.0
"""From the connection, or from the first byte of a later request, to the end of its headers."""
KEEP_ALIVE_SECONDS = 75.0
"""Between two requests, also when a part of the second came with the first; longer than the usual 60 s of proxies, so
that it is the proxy that ends a connection."""
ANSWER_SECONDS = 30.0
"""For the rest of an answer when its reader hardly reads."""
LINGERING_SECONDS = 2.0
"""For the rest of a body that nobody wanted."""


class Doorman:
    """Makes the connections of one server and keeps them few; tells at growing intervals whom it sent away."""

    def __init__(self, server: web.Server) -> None:
        self._server = server
        # In the order of their last change: the first one has waited, or worked, longest.
        self._waiting: dict[Connection, None] = {}
        self._working: dict[Connection, None] = {}
        self._repeats = RepeatLimiter()

    def __call__(self) -> Connection:
        """The protocol of a new connection."""
        return Connection(self, self._server)

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._waiting) + len(self._working)

    def waits(self, connection: Connection) -> None:
        """It is new, or has had its answer. A new one at the limit sends the one that has waited longest away."""
        is_new = self._working.pop(connection, self) is self
        if is_new and self.connections >= CONNECTION_LIMIT:
            oldest = next(iter(self._waiting or self._working))  # all work: one that hardly reads, or a live page
            self.left(oldest)
            oldest.cut()
            self.tell("http_connections_crowded", remote=oldest.remote, limit=CONNECTION_LIMIT)
        self._waiting[connection] = None

    def works(self, connection: Connection) -> None:
        """It has sent a request, which is being answered now."""
        if self._waiting.pop(connection, self) is not self:
            self._working[connection] = None

    def left(self, connection: Connection) -> None:
        """It is gone, or as good as gone."""
        self._waiting.pop(connection, None)
        self._working.pop(connection, None)

    def tell(self, event: str, remote: str | None, **more: object) -> None:
        """A line at the 1st, 2nd, 4th, 8th … time: a scanner must not fill the log."""
        times = self._repeats.admit(event)
        if times:
            log.warning(event, remote=remote, times=times, **more)


class Connection(web.RequestHandler):
    """aiohttp's own, with limits of time, and without a stranger's bytes in logs and answers."""

    __slots__ = ("_doorman", "_head_timer", "_more", "_working", "remote")

    def __init__(self, doorman: Doorman, server: web.Server) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type] # None is how one says that there is none
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            lingering_time=LINGERING_SECONDS,
        )
        self._doorman = doorman
        self._head_timer: asyncio.TimerHandle | None = None
        self._more = False  # a part of a request has come
        self._working = False
        self.remote: str | None = None

    def cut(self) -> None:
        """End it at once; a polite end would wait for its other side."""
        if self.transport is not None:
            self.transport.abort()

    def works(self) -> None:
        """A request has come, whole but for its body."""
        self._working, self._more = True, False
        self._forget_head()
        self._doorman.works(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection that never says a word counts as one that sends too slowly."""
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self.remote = str(peer[0]) if peer else None
        self._doorman.waits(self)
        self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is over, however it came."""
        self._forget_head()
        self._doorman.left(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """The time for a later request's headers begins with its first byte."""
        self._more = True
        if not self._working and self._head_timer is None:
            self._await_head()
        super().data_received(data)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the rest of the answer; True when the connection is of no more use."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await super().finish_response(request, resp, start_time)
        except TimeoutError:
            self._doorman.tell("http_reader_too_slow", self.remote, seconds=ANSWER_SECONDS)
            self.cut()
            return resp, True
        finally:
            self._working = False
            if self.transport is not None and not self.transport.is_closing():
                self._doorman.waits(self)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - aiohttp's, with the first bytes of what it could not read
    ) -> web.StreamResponse:
        """A short answer and a short line, instead of aiohttp's traceback with what was sent in it."""
        if status == web.HTTPBadRequest.status_code:
            self._doorman.tell("http_request_malformed", self.remote, error=type(exc).__name__)
        else:
            log.error("http_request_failed", status=status, exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun, so it cannot be replaced by another one")
        answer = web.Response(status=status, text=f"{status}\n", headers=own_headers())
        answer.force_close()
        return answer

    def _await_head(self) -> None:
        self._forget_head()
        self._head_timer = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._too_slow)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        if self._more:  # one that says nothing at all is nothing to tell of: browsers open some in advance
            self._doorman.tell("http_request_too_slow", self.remote, seconds=HEAD_SECONDS)
        self.cut()


@web.middleware
async def note_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Tells the connection that its request has come: the time for the headers is over."""
    if isinstance(request.protocol, Connection):
        request.protocol.works()
    return await handler(request)
