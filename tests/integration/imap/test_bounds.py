"""Promises P6 and P9 as far as IMAP goes: memory does not follow the size of things, the event loop is not held."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from ops_mail.core.ids import Uid
from ops_mail.imap.listing import WINDOW
from tests.integration.imap.opening import options, selected
from tests.servers.dovecot import Dovecot

MIB = 1024 * 1024
LINE = b"x" * 76 + b"\r\n"


@contextmanager
def peak_bytes() -> Iterator[list[int]]:
    """The highest amount of memory that Python held above what it held before."""
    found: list[int] = []
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield found
        found.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()


@asynccontextmanager
async def longest_hold_seconds() -> AsyncIterator[list[float]]:
    """The most processor time that the loop's thread spent between two turns: other load does not count.

    What the test process already holds is kept out of garbage collection, as it is no part of what is measured.
    """
    found: list[float] = []

    async def watch() -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(0)
            found.append(time.thread_time() - began)

    gc.collect()
    gc.freeze()
    watching = asyncio.create_task(watch())
    try:
        yield found
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        gc.unfreeze()


async def test_a_large_mail_in_pieces_needs_the_memory_of_a_few_pieces(dovecot: Dovecot, user: str) -> None:
    raw = b"Subject: large\r\n\r\n" + LINE * (25 * MIB // len(LINE))
    dovecot.append(user, "INBOX", raw)
    size = len(raw)
    del raw
    async with selected(options(dovecot, user=user)) as session:
        read = 0
        with peak_bytes() as peak:
            async for piece in session.fetch_pieces(Uid(1)):
                read += len(piece)
    assert read == size
    assert peak[0] < 6 * MIB


async def test_a_mail_whose_size_lies_does_not_fill_the_memory(dovecot: Dovecot, user: str) -> None:
    raw = b"Subject: large\r\n\r\n" + LINE * (25 * MIB // len(LINE))
    dovecot.append(user, "INBOX", raw)
    del raw
    async with selected(options(dovecot, user=user)) as session:
        with peak_bytes() as peak:
            channel = session._channel
            await channel.run("FETCH", "1", "(UID BODY.PEEK[])", prefix="UID", literal_limit=1000)
    assert peak[0] < 2 * MIB


async def test_a_listing_is_bounded_in_memory_and_does_not_hold_the_loop(dovecot: Dovecot, user: str) -> None:
    dovecot.append_many(user, "INBOX", (b"Subject: %d\r\n\r\n" % number for number in range(2 * WINDOW + 10)))
    async with selected(options(dovecot, user=user)) as session:
        with peak_bytes() as peak:
            first = await session.list_after(Uid(0))
        async with longest_hold_seconds() as holds:
            second = await session.list_after(first.entries[-1].uid)
    assert len(first.entries) == len(second.entries) == WINDOW
    assert second.remaining_estimate == 10
    assert peak[0] < 20 * MIB
    assert max(holds) < 0.05
