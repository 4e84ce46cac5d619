"""The real web server on loopback, over a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ops_mail.core.status import ProcessStatus
from ops_mail.metrics import Metrics
from ops_mail.store import Store, open_store
from ops_mail.store.overview import OverviewReader
from ops_mail.store.overview_model import Overview
from ops_mail.web import WebOptions, WebServer, WebSources
from tests.browser.rows import Rows
from tests.browser.stage import HERE, idling, real_clock

CLOCK = real_clock()


class CountingReader(OverviewReader):
    """The real reader; counts how often it is asked."""

    reads = 0

    async def read(self) -> Overview:
        self.reads += 1
        return await super().read()


@dataclass
class Site:
    """A running server. `client` sends from 127.0.0.1 and keeps cookies."""

    server: WebServer
    status: ProcessStatus
    metrics: Metrics
    stuck: list[str]
    store: Store
    reader: CountingReader
    rows: Rows
    client: aiohttp.ClientSession

    async def json(self, path: str, code: int = 200, **more: Any) -> Any:
        async with self.client.get(path, **more) as answer:
            assert answer.status == code
            return await answer.json()

    async def text(self, path: str, code: int = 200, **more: Any) -> str:
        async with self.client.get(path, **more) as answer:
            assert answer.status == code
            return await answer.text()

    def changed(self) -> None:
        """What a listener does after it changed a status."""
        for mailbox in self.status.mailboxes:
            mailbox.notify()


Open = Callable[..., Awaitable[Site]]


def process(**more: Any) -> ProcessStatus:
    values: dict[str, Any] = {
        "instance": "mail-1",
        "role": "all",
        "enabled": True,
        "started_at": CLOCK.now(),
        "mailboxes": [idling("orders", CLOCK)],
        "database_ok": True,
        "database_error": None,
        "modules": {"listener": "on"},
        "instance_id": HERE,
    }
    return ProcessStatus(**(values | more))


@asynccontextmanager
async def running(path: Path, options: WebOptions | None, url: str | None, **more: Any) -> AsyncIterator[Site]:
    store = open_store(url or f"sqlite+aiosqlite:///{path}", lease_seconds=30)
    ready = asyncio.Event()
    if url is None:
        await store.migrate()
    ready.set()
    status, stuck, metrics = process(**more), [], Metrics()  # type: ignore[var-annotated]  # filled by the test
    server = WebServer(WebSources(status, metrics, CLOCK, lambda: stuck), options)
    await server.start("127.0.0.1", 0)
    reader = CountingReader(store.database)
    server.connect_database(reader, ready)
    jar = aiohttp.CookieJar(unsafe=True)  # it would not keep cookies of an IP address
    client = aiohttp.ClientSession(f"http://127.0.0.1:{server.port}/", cookie_jar=jar)
    try:
        yield Site(server, status, metrics, stuck, store, reader, Rows(path, CLOCK.now()), client)
    finally:
        await client.close()
        await server.disconnect_database()
        await server.close()
        await store.close(2)


@pytest.fixture
async def open_site(tmp_path: Path) -> AsyncIterator[Open]:
    """Opens a server over a fresh SQLite database; `url` names another database, which is then left as it is."""
    async with AsyncExitStack() as stack:

        async def start(options: WebOptions | None = None, url: str | None = None, **more: Any) -> Site:
            return await stack.enter_async_context(running(tmp_path / "page.db", options, url, **more))

        yield start
