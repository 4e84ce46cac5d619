"""Waits that a stop ends."""

from __future__ import annotations

import asyncio

import pytest

from ops_mail.waiting import Stopping, end_tasks, sleep_or_stop, unless_stopped


async def test_a_sleep_ends_by_itself_or_with_the_stop() -> None:
    stop = asyncio.Event()
    beats = 0

    def beat() -> None:
        nonlocal beats
        beats += 1

    assert await sleep_or_stop(0.01, stop, beat) is False
    assert beats == 1
    asyncio.get_running_loop().call_later(0.01, stop.set)
    assert await sleep_or_stop(60, stop, beat) is True
    assert await sleep_or_stop(60, stop) is True


async def test_work_gives_its_result_or_its_error() -> None:
    async def fails() -> None:
        raise ValueError("bad")

    assert await unless_stopped(asyncio.sleep(0, 42), asyncio.Event()) == 42
    with pytest.raises(ValueError, match="bad"):
        await unless_stopped(fails(), asyncio.Event())


async def test_a_stop_cancels_the_work_and_waits_for_its_end() -> None:
    stop = asyncio.Event()
    ended = False

    async def work() -> None:
        nonlocal ended
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended = True

    asyncio.get_running_loop().call_later(0.01, stop.set)
    with pytest.raises(Stopping):
        await unless_stopped(work(), stop)
    assert ended


async def test_a_cancellation_from_outside_is_passed_on_after_the_work_has_ended() -> None:
    ended = False

    async def work() -> None:
        nonlocal ended
        try:
            await asyncio.sleep(60)
        finally:
            ended = True

    outer = asyncio.create_task(unless_stopped(work(), asyncio.Event()))
    await asyncio.sleep(0.01)
    outer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await outer
    assert ended


async def test_ending_tasks_leaves_their_errors_in_them() -> None:
    async def fails() -> None:
        raise ValueError("kept")

    task = asyncio.create_task(fails())
    await asyncio.sleep(0)
    await end_tasks(task)
    assert isinstance(task.exception(), ValueError)
