"""Waits that a stop ends at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

BEAT_SECONDS = 5.0


class Stopping(Exception):
    """The process is stopping; what was waited for was cancelled."""


async def sleep_or_stop(seconds: float, stop: asyncio.Event, beat: Callable[[], None] | None = None) -> bool:
    """Wait `seconds` or until `stop`; True when stopping. `beat` is called at least every five seconds."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while not stop.is_set():
        left = until - loop.time()
        if left <= 0:
            return False
        if beat is not None:
            beat()
        try:
            async with asyncio.timeout(min(left, BEAT_SECONDS)):
                await stop.wait()
        except TimeoutError:
            continue
    return True


async def unless_stopped(work: Coroutine[Any, Any, T], stop: asyncio.Event) -> T:
    """The result of `work`, or `Stopping` with `work` cancelled when the stop comes first."""
    task = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Stopping
    finally:
        await end_tasks(task, stopping)


async def end_tasks(*tasks: asyncio.Future[Any]) -> None:
    """Cancel what still runs and wait for it; results and errors stay in the tasks.

    A cancellation from outside that comes meanwhile is passed on after the tasks have ended.
    """
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not complain about it later
