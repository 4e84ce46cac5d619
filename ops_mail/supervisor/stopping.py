"""SIGTERM and SIGINT: one switch, and an end that comes within the grace period whatever happens (promise P7)."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from types import FrameType

import structlog

log = structlog.get_logger("ops_mail.supervisor")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_HEADROOM_SECONDS = 0.5


class StopSwitch:
    """Turns the first signal into `stop`, and arms the last resort: exit code 0 just before the grace is over.

    Plain signal handlers instead of the loop's own: they also run while the loop itself is blocked in Python code.
    """

    def __init__(self, stop: asyncio.Event, grace_seconds: float) -> None:
        self.stop = stop
        self._grace_seconds = grace_seconds
        self._loop = asyncio.get_running_loop()
        self._timer: threading.Timer | None = None
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}

    def install(self) -> None:
        """From the main thread only."""
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)

    def close(self) -> None:
        """The end came in order: give the signals back and disarm."""
        if self._timer is not None:
            self._timer.cancel()
            return  # a signal repeated while the interpreter ends must not turn exit code 0 into death by signal
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._timer is not None:
            return
        self._timer = threading.Timer(max(0.1, self._grace_seconds - _HEADROOM_SECONDS), self._last_resort)
        self._timer.daemon = True
        self._timer.start()
        try:
            self._loop.call_soon_threadsafe(self._begin, signal.Signals(number).name)
        except RuntimeError:
            # The loop is closed: the end that the signal asks for has come already, but for the interpreter's own.
            return

    def _begin(self, name: str) -> None:
        log.info("stopping", signal=name, grace_seconds=self._grace_seconds)
        self.stop.set()

    def _last_resort(self) -> None:
        # Not an orderly end, but a safe one: nothing is committed halfway, and the guard dies with its connection.
        os.write(2, b"ops-mail: the grace period is over, ending at once\n")
        os._exit(0)
