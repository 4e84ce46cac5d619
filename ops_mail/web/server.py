"""One aiohttp server for all endpoints; it only reads, and it is up before anything else starts."""

from __future__ import annotations

import asyncio
from importlib.resources import files

import structlog
from aiohttp import web
from prometheus_client.aiohttp import make_aiohttp_handler

from ops_mail.errors import OpsMailError
from ops_mail.store.overview import OverviewReader
from ops_mail.web.assets import serve_asset
from ops_mail.web.connections import Doorman, note_request
from ops_mail.web.headers import add_security_headers
from ops_mail.web.people import PeopleHandlers
from ops_mail.web.probes import health_view, ready_view
from ops_mail.web.sources import WebOptions, WebSources

log = structlog.get_logger("ops_mail.web")

_SHUTDOWN_SECONDS = 1.0  # aiohttp's cleanup takes up to twice this
_LARGEST_BODY = 4096  # the only thing ever sent here is a token
_BACKLOG = 512  # a crowd at the door must not keep a probe from being accepted


class WebServer:
    """`start` binds the port or raises `OpsMailError`; `close` never raises."""

    def __init__(self, sources: WebSources, options: WebOptions | None = None) -> None:
        self._sources = sources
        self._people = PeopleHandlers(sources, options or WebOptions())
        self._description = (files("ops_mail.web") / "openapi.json").read_bytes()
        application = web.Application(client_max_size=_LARGEST_BODY, middlewares=[note_request])
        application.on_response_prepare.append(add_security_headers)
        router = application.router
        router.add_get("/healthz", self._healthz)
        router.add_get("/readyz", self._readyz)
        router.add_get("/metrics", make_aiohttp_handler(sources.metrics.registry))
        router.add_get("/api/openapi.json", self._openapi)
        router.add_get("/static/{name}", serve_asset)
        self._people.add_routes(router)
        self._runner = web.AppRunner(application, handle_signals=False, shutdown_timeout=_SHUTDOWN_SECONDS)
        self._listening: asyncio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen on host and port (0 = the system's choice, then in `port`)."""
        await self._runner.setup()
        assert self._runner.server is not None  # noqa: S101 - what setup is for
        doorman = Doorman(self._runner.server)
        try:
            self._listening = await asyncio.get_running_loop().create_server(doorman, host, port, backlog=_BACKLOG)
        except OSError as error:
            await self.close()
            raise OpsMailError(
                f"cannot listen on {host}:{port}: {error.strerror or error}; "
                "set OPS_MAIL_HTTP_HOST and OPS_MAIL_HTTP_PORT to a free address"
            ) from error
        self.port = self._listening.sockets[0].getsockname()[1]
        log.info("http_listening", host=host, port=self.port)

    def connect_database(self, reader: OverviewReader, ready: asyncio.Event) -> None:
        """From now on the page may look at the database, once `ready` is set (the tables exist)."""
        self._people.connect_database(reader, ready)

    async def disconnect_database(self) -> None:
        """Before the database is closed: the page goes on from memory alone."""
        await self._people.disconnect_database()

    async def close(self) -> None:
        self._people.close()
        if self._listening is not None:
            self._listening.close()
        try:
            async with asyncio.timeout(2 * _SHUTDOWN_SECONDS + 0.5):
                await self._runner.cleanup()
        except (OSError, TimeoutError) as error:  # a close that fails never hides why we are closing
            log.warning("http_close_failed", error=str(error))

    async def _healthz(self, _request: web.Request) -> web.Response:
        code, body = health_view(self._sources.status, self._sources.stuck_reasons())
        return web.json_response(body, status=code)

    async def _readyz(self, _request: web.Request) -> web.Response:
        code, body = ready_view(self._sources.status, self._sources.clock.boot())
        return web.json_response(body, status=code)

    async def _openapi(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._description, content_type="application/json", charset="utf-8")
