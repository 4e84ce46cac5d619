"""How late the event loop is, measured from inside it."""

from __future__ import annotations

import asyncio

from prometheus_client import Histogram

SAMPLE_SECONDS = 0.05


async def measure_loop_lag(lag: Histogram) -> None:
    """Sleep 50 ms again and again and record how much later than asked the loop came back. Ends by cancellation."""
    clock = asyncio.get_running_loop().time
    while True:
        started = clock()
        await asyncio.sleep(SAMPLE_SECONDS)
        lag.observe(max(0.0, clock() - started - SAMPLE_SECONDS))
