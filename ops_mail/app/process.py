"""One process from its first log line to its last: build, start, wait for the stop, end in order."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog

from ops_mail import __version__
from ops_mail.app.ending import end_soon
from ops_mail.app.modules import Modules, modules_for, what_is_used
from ops_mail.app.options import backoff_policy, listener_options
from ops_mail.app.spool_root import spool_root
from ops_mail.app.web_options import web_options
from ops_mail.core.clock import Clock
from ops_mail.core.ids import FolderKey
from ops_mail.core.status import MailboxStatus, ProcessStatus
from ops_mail.errors import ConfigError, OpsMailError
from ops_mail.handlers import HandlerParts, HandlerService, LoadedHandler, load_handler
from ops_mail.listener.mailbox import MailboxListener
from ops_mail.listener.tools import Landed, ListenerTools
from ops_mail.logs import configure_logging
from ops_mail.maintenance import DatabaseWatch, InstanceRow, Retention
from ops_mail.metrics import Metrics, measure_loop_lag
from ops_mail.mime.pool import ParserPool
from ops_mail.settings import Settings
from ops_mail.store import Guard, Store, open_store
from ops_mail.store.blob_choice import keep_contents_in
from ops_mail.store.overview import OverviewReader
from ops_mail.supervisor import ServiceManager, StopSwitch, Supervisor
from ops_mail.web import WebServer, WebSources

log = structlog.get_logger("ops_mail.app")

_CLOSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Hooks:
    """For those who run the process inside their own program, as the demo does."""

    on_landed: Callable[[Landed], None] = lambda _landed: None
    on_listening: Callable[[int], None] = lambda _port: None
    on_status: Callable[[ProcessStatus], None] = lambda _status: None
    stop: asyncio.Event | None = None


def system_clock() -> Clock:
    """Linux's three clocks."""
    return Clock(
        now=lambda: datetime.now(UTC), mono=time.monotonic, boot=lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
    )


def run(settings: Settings) -> int:
    """Run until a signal; the exit code: 0 after a stop, 1 when it could not start."""
    # What is loaded by now lives as long as the process. Left to the collector, a full pass over it can hold the event
    # loop for 40 ms and more (promise P9).
    gc.collect()
    gc.freeze()
    with configure_logging(settings.log, role=settings.role, instance=settings.instance_name):
        return asyncio.run(_serve_and_end(settings))


async def _serve_and_end(settings: Settings) -> int:
    code = await serve(settings)
    end_soon(code)
    return code


async def serve(settings: Settings, hooks: Hooks | None = None) -> int:
    """Like `run`, inside a running loop of the main thread.

    Raises ConfigError for a handler, or a place for contents, that cannot be used.
    """
    hooks = hooks or Hooks()
    stop = hooks.stop or asyncio.Event()
    modules = modules_for(settings)
    used = {"database": settings.safe_url, **what_is_used(settings)}
    log.info("starting", version=__version__, pid=os.getpid(), **used, **modules.words())
    handler = load_handler(settings.handler) if modules.handlers else None
    switch = StopSwitch(stop, settings.shutdown_grace_seconds)
    switch.install()
    try:
        with spool_root() as spool:
            return await _Process(settings, modules, handler, hooks, stop, spool).serve()
    except ConfigError:
        raise  # told by the command line, with an exit code of its own
    except (OpsMailError, OSError) as error:
        log.error("cannot_start", error=str(error))
        return 1
    finally:
        switch.close()
        log.info("stopped")


class _Process:
    """Everything of one process, built in `__init__`, started and closed in `serve`."""

    def __init__(
        self,
        settings: Settings,
        modules: Modules,
        handler: LoadedHandler | None,
        hooks: Hooks,
        stop: asyncio.Event,
        spool: Path,
    ) -> None:
        self._settings = settings
        self._modules = modules
        self._handler = handler
        self._handlers: HandlerService | None = None
        self._hooks = hooks
        self._stop = stop
        self._spool = spool
        self._clock = system_clock()
        self._metrics = Metrics()
        self._metrics.describe_build(settings.role)
        self._supervisor = Supervisor(self._clock.mono, stop)
        self._holder = f"{settings.instance_name}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        self._status = ProcessStatus(
            instance=settings.instance_name,
            role=settings.role.value,
            enabled=settings.enabled,
            started_at=self._clock.now(),
            mailboxes=self._mailbox_statuses(),
            modules=modules.words(),
            instance_id=self._holder,
        )
        hooks.on_status(self._status)
        sources = WebSources(self._status, self._metrics, self._clock, self._supervisor.reasons)
        self._web = WebServer(sources, web_options(settings))

    def _mailbox_statuses(self) -> list[MailboxStatus]:
        session = self._settings.session
        return [
            MailboxStatus(
                key=FolderKey(mailbox.name, mailbox.folder),
                idle_window_seconds=session.idle_seconds,
                command_timeout_seconds=session.command_timeout_seconds,
                source=mailbox.source,
            )
            for mailbox in self._settings.mailboxes
            if self._modules.listener
        ]

    async def serve(self) -> int:
        """Raises OpsMailError when the port is taken; anything later is handled inside."""
        await self._web.start(self._settings.http.host, self._settings.http.port)
        self._hooks.on_listening(self._web.port)
        lag = asyncio.create_task(measure_loop_lag(self._metrics.event_loop_lag_seconds), name="loop lag")
        manager = ServiceManager(os.environ)
        telling = asyncio.create_task(
            manager.keep_telling(self._supervisor.reasons, self._stop), name="service manager"
        )
        # Ready = the endpoints answer. Whether databases and mailboxes do is readiness, which may come and go.
        manager.ready()
        try:
            if self._settings.enabled:
                await self._work()
            else:
                await self._stop.wait()
        finally:
            lag.cancel()
            if not self._stop.is_set():
                telling.cancel()  # a stop ends it by itself, after it has told
            await asyncio.wait({lag, telling})
            await self._web.close()
        return 0

    async def _work(self) -> None:
        settings = self._settings
        store = open_store(
            settings.store.database_url.reveal(),
            lease_seconds=settings.store.lease_seconds,
            forbidden_tables=settings.store.forbidden_tables,
        )
        store.database.on_audit = self._metrics.count_audit
        keep_contents_in(store, settings.store.store_url)
        guard = Guard(store, self._holder, settings.store.lease_seconds)
        parsers = ParserPool(max_message_bytes=settings.session.max_message_bytes)
        try:
            schema_ready = asyncio.Event()
            self._web.connect_database(OverviewReader(store.database), schema_ready)
            self._start_maintenance(store, schema_ready)
            if self._handler is not None:
                self._start_handlers(self._handler, store, schema_ready)
            if self._modules.listener:
                await parsers.warm()
                self._start_listeners(store, guard, parsers, schema_ready)
            await self._stop.wait()
            await self._supervisor.join(settings.shutdown_grace_seconds * 0.7)
        finally:
            await self._web.disconnect_database()
            await parsers.close()
            await guard.close()
            await store.close(_CLOSE_SECONDS)

    def _start_maintenance(self, store: Store, schema_ready: asyncio.Event) -> None:
        watch = DatabaseWatch(
            store,
            self._status,
            self._metrics,
            auto_migrate=self._settings.store.auto_migrate,
            backoff=backoff_policy(self._settings),
            random=random.random,
            stop=self._stop,
            schema_ready=schema_ready,
            pulse=self._supervisor.pulse("database watch"),
        )
        row = InstanceRow(
            store,
            self._status,
            instance_id=self._holder,
            lease_seconds=self._settings.store.lease_seconds,
            stop=self._stop,
            schema_ready=schema_ready,
            pulse=self._supervisor.pulse("instance row"),
        )
        self._supervisor.start("database watch", watch.run)
        self._supervisor.start("instance row", row.run)
        if self._modules.listener:
            self._start_retention(store, schema_ready)

    def _start_retention(self, store: Store, schema_ready: asyncio.Event) -> None:
        retention = Retention(
            store,
            days=self._settings.maintenance.retention_days,
            random=random.random,
            stop=self._stop,
            schema_ready=schema_ready,
            pulse=self._supervisor.pulse("retention"),
        )
        self._supervisor.start("retention", retention.run)

    def _start_handlers(self, handler: LoadedHandler, store: Store, schema_ready: asyncio.Event) -> None:
        parts = HandlerParts(
            store=store,
            metrics=self._metrics,
            clock=self._clock,
            random=random.random,
            stop=self._stop,
            schema_ready=schema_ready,
            instance=self._holder,
            pulse=self._supervisor.pulse("handlers"),
            grace_seconds=self._settings.shutdown_grace_seconds,
        )
        self._handlers = HandlerService(handler, self._settings.handler, parts)
        self._supervisor.start("handlers", self._handlers.run)

    def _on_landed(self, landed: Landed) -> None:
        self._hooks.on_landed(landed)
        if self._handlers is not None:
            self._handlers.wake()

    def _start_listeners(self, store: Store, guard: Guard, parsers: ParserPool, schema_ready: asyncio.Event) -> None:
        tools = ListenerTools(
            store=store,
            guard=guard,
            parsers=parsers,
            metrics=self._metrics,
            clock=self._clock,
            spool_root=self._spool,
            random=random.random,
            stop=self._stop,
            schema_ready=schema_ready,
            on_landed=self._on_landed,
        )
        for mailbox, status in zip(self._settings.mailboxes, self._status.mailboxes, strict=True):
            options = listener_options(self._settings, mailbox)
            listener = MailboxListener(tools, options, status, self._supervisor.pulse)
            self._supervisor.start(f"listener:{options.key}", listener.run)
