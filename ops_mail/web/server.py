"""One aiohttp server for all endpoints; it only reads, and it is up before anything else starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from aiohttp import web
from prometheus_client.aiohttp import make_aiohttp_handler

from ops_mail.core.clock import Clock
from ops_mail.core.status import ProcessStatus
from ops_mail.errors import OpsMailError
from ops_mail.metrics import Metrics
from ops_mail.web.page import CONTENT_SECURITY_POLICY, render_page
from ops_mail.web.view import health_view, ready_view, status_view

log = structlog.get_logger("ops_mail.web")

_SHUTDOWN_SECONDS = 1.0  # aiohttp's cleanup takes up to twice this


@dataclass(frozen=True, slots=True)
class WebSources:
    """What the endpoints read."""

    status: ProcessStatus
    metrics: Metrics
    clock: Clock
    stuck_reasons: Callable[[], list[str]]


class WebServer:
    """`start` binds the port or raises `OpsMailError`; `close` never raises."""

    def __init__(self, sources: WebSources) -> None:
        self._sources = sources
        application = web.Application()
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", make_aiohttp_handler(sources.metrics.registry))
        application.router.add_get("/api/status", self._api_status)
        application.router.add_get("/", self._page)
        self._runner = web.AppRunner(
            application, handle_signals=False, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS
        )
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen on host and port (0 = the system's choice, then in `port`)."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            await self.close()
            raise OpsMailError(
                f"cannot listen on {host}:{port}: {error.strerror or error}; "
                "set OPS_MAIL_HTTP_HOST and OPS_MAIL_HTTP_PORT to a free address"
            ) from error
        self.port = self._runner.addresses[0][1]
        log.info("http_listening", host=host, port=self.port)

    async def close(self) -> None:
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

    async def _api_status(self, _request: web.Request) -> web.Response:
        sources = self._sources
        return web.json_response(status_view(sources.status, sources.stuck_reasons(), sources.clock.boot()))

    async def _page(self, _request: web.Request) -> web.Response:
        sources = self._sources
        html = render_page(status_view(sources.status, sources.stuck_reasons(), sources.clock.boot()))
        headers = {
            "Content-Security-Policy": CONTENT_SECURITY_POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }
        return web.Response(text=html, content_type="text/html", headers=headers)
