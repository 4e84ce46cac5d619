"""Parts that crash, parts that will not end."""

from __future__ import annotations

import asyncio
import time

from ops_mail.supervisor import Supervisor


async def test_a_part_that_crashes_is_restarted_and_the_others_go_on() -> None:
    stop = asyncio.Event()
    supervisor = Supervisor(time.monotonic, stop)
    starts = 0
    steps = 0
    again = asyncio.Event()

    async def crashes_once() -> None:
        nonlocal starts
        starts += 1
        if starts == 1:
            raise ValueError("a bug")
        again.set()
        await stop.wait()

    async def works() -> None:
        nonlocal steps
        while not stop.is_set():
            steps += 1
            await asyncio.sleep(0.01)

    supervisor.start("crashes", crashes_once)
    supervisor.start("works", works)
    await asyncio.wait_for(again.wait(), 10)
    assert starts == 2
    assert steps > 10
    assert supervisor.reasons() == []
    stop.set()
    await supervisor.join(1)


async def test_a_part_that_ends_without_a_stop_is_started_again() -> None:
    stop = asyncio.Event()
    supervisor = Supervisor(time.monotonic, stop)
    starts = 0
    again = asyncio.Event()

    async def ends() -> None:
        nonlocal starts
        starts += 1
        if starts == 2:
            again.set()

    supervisor.start("ends", ends)
    await asyncio.wait_for(again.wait(), 10)
    stop.set()
    await supervisor.join(1)
    assert starts >= 2


async def test_a_part_that_crashes_again_and_again_makes_the_process_unhealthy() -> None:
    stop = asyncio.Event()
    supervisor = Supervisor(time.monotonic, stop)

    async def never() -> None:
        await stop.wait()

    supervisor.start("part", never)
    supervisor._parts[0].crashes = 6
    supervisor._parts[0].last_error = "ValueError: a bug"
    assert supervisor.reasons() == ["part has crashed 6 times in a row: ValueError: a bug"]
    stop.set()
    await supervisor.join(1)


async def test_a_part_that_ignores_the_stop_is_cancelled_after_its_time() -> None:
    stop = asyncio.Event()
    supervisor = Supervisor(time.monotonic, stop)
    cancelled = False

    async def deaf() -> None:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled = True
            raise

    supervisor.start("deaf", deaf)
    await asyncio.sleep(0)
    stop.set()
    await supervisor.join(0.05)
    assert cancelled


async def test_a_pulse_from_the_supervisor_counts_in_its_verdict() -> None:
    now = 100.0
    supervisor = Supervisor(lambda: now, asyncio.Event())
    pulse = supervisor.pulse("listener:ops/INBOX")
    pulse.expect(5, "idling")
    assert supervisor.reasons() == []
    now = 200.0
    assert supervisor.reasons() == [
        "listener:ops/INBOX has shown no life for 95 s longer than it promised (doing: idling)"
    ]
