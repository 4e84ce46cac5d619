"""The live feed: what it sends, to how many, and how it ends."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from ops_mail.core.states import State
from ops_mail.web import frames, live
from ops_mail.web.page import SECTIONS
from tests.browser.stage import idling
from tests.integration.web.conftest import CLOCK, Open, Site


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str]]:
    """(name, data) of each event of a stream."""
    name = data = ""
    async for raw in answer.content:
        field, _, value = raw.decode().rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            data = value
        elif not field and name:
            yield name, data
            name = data = ""


async def update(stream: AsyncIterator[tuple[str, str]]) -> dict[str, str]:
    """The parts that the next update brings."""
    async with asyncio.timeout(10):
        async for name, data in stream:
            if name == "update":
                changed: dict[str, str] = json.loads(data)["changed"]
                return changed
    raise AssertionError("the stream ended")


async def reading(site: Site, query: str = "") -> aiohttp.ClientResponse:
    answer = await site.client.get(f"events{query}", timeout=aiohttp.ClientTimeout(total=60))
    assert answer.status == 200
    assert answer.content_type == "text/event-stream"
    return answer


async def test_a_reader_gets_everything_first_and_then_what_changes(open_site: Open) -> None:
    site = await open_site()
    await site.text("")  # the look at the database
    async with await reading(site) as answer:
        stream = events(answer)
        first = await update(stream)
        assert set(first) == {"title", "icon", *(f"#{name}" for name in SECTIONS)}
        site.status.mailboxes[0].state = State.BACKOFF
        site.status.mailboxes[0].failures = 1
        site.status.mailboxes[0].last_error = "the connection broke"
        site.changed()
        second = await update(stream)
        assert set(second) == {"title", "#headline", "#mailboxes", "icon"}
        assert "the connection broke" in second["#mailboxes"]


async def test_a_change_that_nobody_announces_is_seen_at_the_next_tick(open_site: Open) -> None:
    site = await open_site()
    await site.text("")
    async with await reading(site) as answer:
        stream = events(answer)
        await update(stream)
        site.status.mailboxes[0].backlog = 41
        assert set(await update(stream)) == {"#mailboxes"}


async def test_each_reader_gets_its_language(open_site: Open) -> None:
    site = await open_site()
    async with await reading(site, "?lang=zh") as answer:
        assert "邮箱监听正常" in (await update(events(answer)))["title"]


async def test_a_feed_without_news_still_beats(open_site: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(live, "TICK_SECONDS", 0.02)
    site = await open_site()
    await site.text("")
    async with await reading(site) as answer, asyncio.timeout(10):
        names = []
        async for name, _ in events(answer):
            names.append(name)
            if names.count("beat") == 5:
                break


async def test_a_reader_keeps_the_look_at_the_database_going(open_site: Open) -> None:
    site = await open_site()
    site.server._people._look._every_seconds = 0.05
    async with await reading(site) as answer:
        stream = events(answer)
        while not (changed := await update(stream)).get("#dead", ""):
            pass
        site.rows.mail("orders", "dead", site.rows.now, last_error="found by the live feed")
        while "found by the live feed" not in changed.get("#dead", ""):
            changed = await update(stream)


async def test_readers_are_limited(open_site: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "READER_LIMIT", 3)
    site = await open_site()
    answers = [await reading(site) for _ in range(3)]
    async with site.client.get("events") as refused:
        assert refused.status == 503
        assert refused.headers["Retry-After"] == "10"
    answers[0].close()
    async with asyncio.timeout(10):
        while site.server._people._feed.readers == 3:
            await asyncio.sleep(0.02)
    (await reading(site)).close()
    for answer in answers:
        answer.close()


async def test_closing_ends_every_stream_and_the_server_at_once(open_site: Open) -> None:
    site = await open_site()
    answers = [await reading(site) for _ in range(5)]
    streams = [events(answer) for answer in answers]
    for stream in streams:
        await update(stream)
    started = time.monotonic()
    await site.server.close()
    took = time.monotonic() - started
    assert took < 2.5, f"closing took {took:.1f} s"
    for stream in streams:
        async with asyncio.timeout(5):
            assert [name async for name, _ in stream if name == "never"] == []


async def test_a_reader_that_does_not_read_is_let_go(open_site: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "WRITE_SECONDS", 0.2)
    monkeypatch.setattr(frames, "SHORTEST_SECONDS", 0.0)
    site = await open_site(mailboxes=[idling(f"box {number}", CLOCK) for number in range(300)])  # half a megabyte each
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(deaf, ("127.0.0.1", site.server.port))
        await loop.sock_sendall(deaf, b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        feed = site.server._people._feed
        async with asyncio.timeout(60):
            while not feed.readers:
                await asyncio.sleep(0.01)
            number = 0
            while feed.readers:
                number += 1
                site.status.mailboxes[0].backlog = number  # news until the buffers are full
                site.changed()
                await asyncio.sleep(0.02)


async def test_a_listener_may_tell_of_changes_after_the_server_has_closed(open_site: Open) -> None:
    site = await open_site()
    await site.server.close()
    site.changed()
    assert site.status.mailboxes[0].changed == []


async def test_an_hour_is_the_longest_a_stream_lasts(open_site: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LONGEST_SECONDS", 0.3)
    site = await open_site()
    async with await reading(site) as answer, asyncio.timeout(10):
        names: list[Any] = [name async for name, _ in events(answer)]
    assert "update" in names
