"""One running handler, seen from the main loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Thread
from typing import Protocol

from ops_mail.handlers.answering import Answer
from ops_mail.handlers.mail import Mail


class Job:
    """`future` gets the answer when the handler has really ended, which may be after it was given up.

    `innocent`: it took so long because another one held it up.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, mail: Mail) -> None:
        self.mail = mail
        self.innocent = False
        self.future: asyncio.Future[Answer] = loop.create_future()
        self._loop = loop

    def tell(self, answer: Answer) -> None:
        """From any thread, once or more; the first answer counts."""
        with suppress(RuntimeError):  # the main loop has ended before a handler that was given up
            self._loop.call_soon_threadsafe(self._settle, answer)

    def _settle(self, answer: Answer) -> None:
        if not self.future.done():
            self.future.set_result(answer)


class Executor(Protocol):
    """Runs handlers off the main loop. All methods are called on the main loop."""

    can_cancel: bool
    """Whether jobs usually end soon when they are asked to."""

    def start(self, mail: Mail) -> Job:
        """Begin."""

    async def end(self, job: Job, patience_seconds: float, *, last: bool = False) -> bool:
        """Asks a job to end, and waits for a moment. False: it goes on although nobody waits for it: it is hung.

        `last`: the process is stopping, so nothing is set up for jobs to come.
        """

    @property
    def hung(self) -> int:
        """How many jobs were given up and still run."""

    async def close(self, patience_seconds: float) -> None:
        """Ends what can be ended."""


Handler = Callable[[Mail], object]


async def until_ended(threads: Iterable[Thread], patience_seconds: float) -> None:
    """Waits for threads without keeping the loop; those that do not end in time are left (they are daemons)."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_seconds
    for thread in threads:
        while thread.is_alive() and loop.time() < deadline:  # noqa: ASYNC110 - a thread that ends sets no event
            await asyncio.sleep(0.01)
