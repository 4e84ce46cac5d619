"""A handler that forks: only the process that it was called in may come back from it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

FORKED = 70
"""The exit code of a child that came back, whether it returned or raised."""


@contextmanager
def only_here() -> Iterator[None]:
    """Ends a child that leaves the block, at once.

    It would wait for jobs that never come, and hold the port and the connections (the guard's among them) of a process
    that may have ended long ago.
    """
    here = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != here:
            os._exit(FORKED)
