"""The switch that SIGTERM turns, at its edges."""

from __future__ import annotations

import asyncio
import os
import signal

from ops_mail.supervisor import StopSwitch


def test_a_signal_after_the_loop_has_closed_is_no_fault() -> None:
    async def installed() -> StopSwitch:
        switch = StopSwitch(asyncio.Event(), grace_seconds=60)
        switch.install()
        return switch

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    switch = asyncio.run(installed())
    try:
        os.kill(os.getpid(), signal.SIGTERM)  # an error in the handler would come out here
    finally:
        switch.close()  # disarms the last resort
        for number, handler in before.items():
            signal.signal(number, handler)
    assert not switch.stop.is_set()
