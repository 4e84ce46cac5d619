"""A migrated store on each engine, and handler services on it inside the test's own loop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ops_mail.app.process import system_clock
from ops_mail.core.health import Pulse
from ops_mail.handlers import HandlerParts, HandlerService
from ops_mail.handlers.loading import LoadedHandler, loaded_callable
from ops_mail.metrics import Metrics
from ops_mail.settings import HandlerOrder, HandlerSettings
from ops_mail.store import Store, open_store
from tests.servers.fixtures import *  # noqa: F403 - fixtures are found by name
from tests.servers.process import SqlServer
from tests.servers.tables import Tables

LEASE_SECONDS = 3.0


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    opened = open_store(database_url, lease_seconds=LEASE_SECONDS)
    await opened.migrate()
    yield opened
    await opened.close(2)


@pytest.fixture
async def server_store(sql_server: SqlServer) -> AsyncIterator[Store]:
    opened = open_store(sql_server.create_database(), lease_seconds=LEASE_SECONDS)
    await opened.migrate()
    yield opened
    await opened.close(2)


@pytest.fixture
def tables(database_url: str) -> Tables:
    return Tables(database_url)


@dataclass
class Running:
    """A service at work."""

    service: HandlerService
    metrics: Metrics
    pulse: Pulse
    stop: asyncio.Event
    task: asyncio.Task[None]

    async def end(self) -> None:
        self.stop.set()
        await self.task

    def count(self, outcome: str) -> float:
        return self.sample("ops_mail_handler_attempts_total", outcome=outcome) or 0.0

    def sample(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


Serve = Callable[..., Any]


@pytest.fixture
def serve(store: Store) -> Serve:
    """A context manager by which a function handles mails until its block ends."""

    @asynccontextmanager
    async def running(
        handler: Callable[..., object] | LoadedHandler, *, grace: float = 2.0, **changes: Any
    ) -> AsyncIterator[Running]:
        values: dict[str, Any] = {"target": None, "concurrency": 4, "timeout_seconds": 30.0, "max_attempts": 5,
                                  "order": HandlerOrder.ANY, **changes}  # fmt: skip
        clock, metrics, stop, ready = system_clock(), Metrics(), asyncio.Event(), asyncio.Event()
        ready.set()
        pulse = Pulse("handlers", clock.mono)
        parts = HandlerParts(store, metrics, clock, random.random, stop, ready, "test", pulse, grace)
        loaded = handler if isinstance(handler, LoadedHandler) else loaded_callable("tests:handler", handler)
        service = HandlerService(loaded, HandlerSettings(**values), parts)
        one = Running(service, metrics, pulse, stop, asyncio.create_task(service.run()))
        try:
            yield one
        finally:
            await one.end()

    return running


class Effects:
    """What handlers have done, seen from outside, in order."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, line: str) -> None:
        with self._path.open("a") as file:
            file.write(line + "\n")

    def all(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []


@pytest.fixture
def effects(tmp_path: Path) -> Effects:
    return Effects(tmp_path / "effects")


async def until(look: Callable[[], Any], what: str, seconds: float = 20.0) -> Any:
    """Poll in a thread until `look()` is true."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        value = await asyncio.to_thread(look)
        if value:
            return value
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"no {what} within {seconds:g} s")
        await asyncio.sleep(0.03)
