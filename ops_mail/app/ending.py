"""The very end of the process, after everything of ours is closed."""

from __future__ import annotations

import os
import signal
import threading

_SECONDS = 1.0


def end_soon(code: int) -> None:
    """From now on the process has a second to end by itself with `code`; then it is ended (promise P7).

    Python waits at its exit for threads that a handler, or a library that it uses, has started and left at work; one
    that hangs would keep the process until it is killed.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        # Python gives handlers back while it ends: a repeated signal would turn the exit code into death by signal.
        signal.signal(number, signal.SIG_IGN)
    timer = threading.Timer(_SECONDS, os._exit, (code,))
    timer.daemon = True
    timer.start()
