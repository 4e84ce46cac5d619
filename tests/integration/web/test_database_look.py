"""The page and the database: looked at in the background, while somebody looks, never for one request."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from ops_mail.store.edge import STATEMENT_SECONDS
from ops_mail.store.overview import READ_SECONDS
from ops_mail.web import look
from tests.integration.web.conftest import Open


async def test_a_hundred_requests_are_one_look(open_site: Open) -> None:
    site = await open_site()
    pages = await asyncio.gather(*(site.text("") for _ in range(100)))
    assert len(pages) == 100
    assert site.reader.reads == 1
    await asyncio.gather(*(site.json("api/status") for _ in range(50)))
    assert site.reader.reads == 1


async def test_the_first_page_already_shows_the_database(open_site: Open) -> None:
    site = await open_site()
    site.rows.mail("orders", "dead", site.rows.now, last_error="no such order")
    assert "no such order" in await site.text("")


async def test_nobody_looks_and_nothing_is_asked(open_site: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "INTEREST_SECONDS", 0.3)
    site = await open_site()
    site.server._people._look._every_seconds = 0.05
    await site.text("")
    await asyncio.sleep(0.6)
    quiet = site.reader.reads
    assert 2 <= quiet <= 10
    await site.json("healthz")
    await site.json("readyz")
    await asyncio.sleep(0.3)
    assert site.reader.reads == quiet, "probes are nobody who looks"
    await site.text("")
    assert site.reader.reads > quiet


async def test_a_database_that_cannot_be_opened_leaves_a_page_from_memory(open_site: Open, tmp_path: Path) -> None:
    site = await open_site(url=f"sqlite+aiosqlite:///{tmp_path}/no/such/folder/x.db")
    html = await site.text("")
    assert "The overview could not be read" in html
    assert "unable to open database file" in html
    assert "Listening (IDLE)" in html
    body = await site.json("api/status")
    assert body["overview"] is None
    assert "unable to open database file" in body["database_error"]


async def test_a_database_that_does_not_answer_delays_only_the_first_page(open_site: Open) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    site = await open_site(url=f"mysql+aiomysql://u:p@127.0.0.1:{port}/x", database_ok=False, database_error="silent")
    try:
        started = time.monotonic()
        assert "The database does not answer" in await site.text("")
        first = time.monotonic() - started
        assert first < READ_SECONDS < STATEMENT_SECONDS, "the page waited for the database"
        assert "silent" in (await site.json("api/status"))["database_error"]
    finally:
        await site.server.disconnect_database()
        silent.close()


async def test_a_bug_in_the_look_is_shown_and_does_not_end_it(open_site: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    site = await open_site()
    site.server._people._look._every_seconds = 0.05

    async def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(site.server._people._look, "_looked_at", float("-inf"))
    await site.server.disconnect_database()
    ready = asyncio.Event()
    ready.set()
    site.server._people._look.start(broken, ready)  # type: ignore[arg-type]  # the bug
    assert "internal error (ZeroDivisionError)" in await site.text("")
    await site.server.disconnect_database()
    site.server.connect_database(site.reader, ready)
    assert "internal error" not in await site.text("")


async def test_after_the_database_was_closed_the_page_goes_on(open_site: Open) -> None:
    site = await open_site()
    assert "Not read from the database yet" not in await site.text("")
    await site.server.disconnect_database()
    html = await site.text("")  # at once: not the picture of a moment ago
    assert "Not read from the database yet" in html
    assert "Listening (IDLE)" in html


async def test_tables_that_are_being_made_are_waited_for(open_site: Open) -> None:
    site = await open_site()
    await site.server.disconnect_database()
    ready = asyncio.Event()
    site.server.connect_database(site.reader, ready)
    assert (await site.json("api/status"))["overview"] is None
    assert site.reader.reads == 0
    ready.set()
    assert (await site.json("api/status"))["overview"] is not None


async def test_totals_of_a_large_table_come_from_the_slower_count(
    open_site: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops_mail.store.overview.STATUS_LIMIT", 3)
    site = await open_site()
    for _ in range(5):
        site.rows.mail("orders", "done", site.rows.now)
    site.metrics.messages.labels(status="done").set(4_000_000)
    messages = (await site.json("api/status"))["overview"]["messages"]
    assert messages["done"] == {"count": 4_000_000, "at_least": False}
