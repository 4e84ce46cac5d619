"""The handlers of what people look at: `/`, `/events`, `/api/status`, signing in and out."""

from __future__ import annotations

import asyncio
from datetime import UTC

import structlog
from aiohttp import web

from ops_mail.core.repeats import RepeatLimiter
from ops_mail.metrics import Metrics
from ops_mail.settings import SecretError
from ops_mail.store.overview import OverviewReader
from ops_mail.web.access import Gate, close_session
from ops_mail.web.as_json import as_json
from ops_mail.web.build import Facts, build_snapshot
from ops_mail.web.frames import Frames
from ops_mail.web.language import Language, choose_language
from ops_mail.web.live import LiveFeed
from ops_mail.web.look import DatabaseLook
from ops_mail.web.page import Frame, Page, Reader
from ops_mail.web.snapshot import Snapshot
from ops_mail.web.sources import WebOptions, WebSources

log = structlog.get_logger("ops_mail.web")

PATIENCE_SECONDS = 1.0
"""How long the first request after a quiet time waits for the database; later ones find what is there."""

_BODY_SECONDS = 10.0
_REFUSAL_SECONDS = 0.5
_REFUSALS_AT_ONCE = 8


class PeopleHandlers:
    """`close` ends every live feed at once."""

    def __init__(self, sources: WebSources, options: WebOptions) -> None:
        self._sources = sources
        self._options = options
        self._page = Page()
        self._gate = Gate(options.token, sources.clock.now)
        self._look = DatabaseLook(sources.clock.mono)
        self._frames = Frames(self._page, self._snapshot, sources.clock.mono)
        self._feed = LiveFeed(self._live_frame, sources.clock.now)
        self._refusing = 0
        self._repeats = RepeatLimiter()
        self._look.on_change = self._changed
        for mailbox in sources.status.mailboxes:
            mailbox.changed.append(self._changed)

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/", self._whole)
        router.add_get("/events", self._events, allow_head=False)
        router.add_get("/api/status", self._api_status)
        router.add_post("/sign-in", self._sign_in)
        router.add_post("/sign-out", self._sign_out)

    def connect_database(self, reader: OverviewReader, ready: asyncio.Event) -> None:
        self._look.start(reader.read, ready)

    async def disconnect_database(self) -> None:
        await self._look.stop()

    def close(self) -> None:
        self._feed.close()
        for mailbox in self._sources.status.mailboxes:
            if self._changed in mailbox.changed:
                mailbox.changed.remove(self._changed)

    def _changed(self) -> None:
        self._frames.outdated()
        self._feed.poke()

    async def _whole(self, request: web.Request) -> web.Response:
        reader = self._reader(request)
        if (refusal := await self._refusal(request)) is not None:
            return self._form(reader, 401 if refusal == "" else 503, refusal or None)
        await self._look.fresh(PATIENCE_SECONDS)
        return _html(reader, await self._frames.whole(reader))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if await self._refusal(request) is not None:
            return web.Response(status=401, text="sign in first\n")
        return await self._feed.serve(request, self._reader(request).language)

    async def _api_status(self, request: web.Request) -> web.Response:
        if (refusal := await self._refusal(request)) is not None:
            error = refusal or "the token of OPS_MAIL_HTTP_TOKEN is required: Authorization: Bearer <token>"
            headers = {"WWW-Authenticate": 'Bearer realm="ops-mail"'}
            return web.json_response({"error": error}, status=503 if refusal else 401, headers=headers)
        await self._look.fresh(PATIENCE_SECONDS)
        return web.json_response(as_json(self._frames.snapshot()))

    async def _sign_in(self, request: web.Request) -> web.Response:
        reader = self._reader(request)
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise web.HTTPForbidden(text="not from another site\n")
        if self._refusing >= _REFUSALS_AT_ONCE:
            return self._form(reader, 429, "sign_in.busy")
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                typed = (await request.post()).get("token", "")
        except TimeoutError:
            raise web.HTTPRequestTimeout from None
        try:
            right = isinstance(typed, str) and await self._gate.accepts(typed)
        except SecretError as error:
            self._tell_unreadable(error)
            return self._form(reader, 503, "sign_in.broken")
        if not right:
            return await self._refuse(request, reader)
        response = web.Response(status=303, headers={"Location": f"./{reader.query}"})
        await self._gate.open_session(request, response)
        return response

    async def _refuse(self, request: web.Request, reader: Reader) -> web.Response:
        # Slow, and few at a time, so that guessing gets nowhere; others are not held up by it.
        self._refusing += 1
        try:
            times = self._repeats.admit(f"refused {request.remote}")
            if times:
                log.warning("sign_in_refused", remote=request.remote, times=times)
            await asyncio.sleep(_REFUSAL_SECONDS)
        finally:
            self._refusing -= 1
        return self._form(reader, 401, "sign_in.wrong")

    async def _sign_out(self, request: web.Request) -> web.Response:
        response = web.Response(status=303, headers={"Location": f"./{self._reader(request).query}"})
        close_session(response)
        return response

    async def _refusal(self, request: web.Request) -> str | None:
        """None for somebody who may look; else why not: `""` without the token, or what is wrong with it here."""
        try:
            return None if await self._gate.lets_in(request) else ""
        except SecretError as error:
            self._tell_unreadable(error)
            return "sign_in.broken"

    def _tell_unreadable(self, error: SecretError) -> None:
        times = self._repeats.admit_error(str(error))
        if times:
            log.error("token_unreadable", error=str(error), times=times)

    def _form(self, reader: Reader, code: int, problem: str | None) -> web.Response:
        return _html(reader, self._page.sign_in(reader, problem), code)

    def _reader(self, request: web.Request) -> Reader:
        wanted = request.query.get("lang")
        language = choose_language(wanted, request.headers.get("Accept-Language"))
        return Reader(language, chosen=wanted == language, signed_in=self._gate.guarded)

    async def _live_frame(self, language: Language) -> Frame:
        self._look.touch()
        return await self._frames.frame(language)

    def _snapshot(self) -> Snapshot:
        sources, options = self._sources, self._options
        now = sources.clock.now().astimezone(UTC)
        return build_snapshot(
            Facts(
                status=sources.status,
                reasons=sources.stuck_reasons(),
                look=self._look.latest,
                totals=_totals(sources.metrics),
                now=now,
                now_boot=sources.clock.boot(),
                content_shown=options.show_content,
                sync_limit_seconds=options.sync_limit_seconds,
                lease_seconds=options.lease_seconds,
            )
        )


def _totals(metrics: Metrics) -> dict[str, int]:
    """Rows by status as last counted to the end, by the watch over the database."""
    samples = (sample for family in metrics.messages.collect() for sample in family.samples)
    return {sample.labels["status"]: int(sample.value) for sample in samples}


def _html(reader: Reader, text: str, code: int = 200) -> web.Response:
    headers = {"Content-Language": reader.language.tag, "Vary": "Accept-Language, Cookie"}
    return web.Response(text=text, status=code, content_type="text/html", headers=headers)
