"""Async functions: all on one event loop of their own, in a thread of its own.

A handler that blocks its loop blocks other handlers at worst, never IDLE, probes or leases; and not for long: when one
is over its time and the loop does not react, a new loop takes the old one's place.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast

import structlog

from ops_mail.core.outcome import EndKind
from ops_mail.handlers.answering import Answer, GivenUp, answer_of_error, answer_of_return
from ops_mail.handlers.daemon_executor import DaemonExecutor
from ops_mail.handlers.forks import only_here
from ops_mail.handlers.jobs import Handler, Job, until_ended
from ops_mail.handlers.mail import Mail

log = structlog.get_logger("ops_mail.handlers")

Farewell = Callable[[], Awaitable[None]] | None
"""Called on a handlers' loop before it ends."""

_AIDS = 16
_REACTS_SECONDS = 0.5
_LEAVE_SECONDS = 0.3


class _LoopThread:
    """One loop in one thread."""

    def __init__(self, handler: Callable[[Mail], Awaitable[object]], farewell: Farewell) -> None:
        self._handler = handler
        self._farewell = farewell
        self.loop = asyncio.new_event_loop()
        self.aids = DaemonExecutor(_AIDS)
        self.loop.set_default_executor(self.aids)
        self.tasks: dict[Job, asyncio.Task[None]] = {}
        self._asked: set[Job] = set()
        self._may_end = False
        self.thread = threading.Thread(target=self._run, name="ops-mail-handler-loop", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            while not self._may_end:
                self._go_round()
        finally:
            with suppress(RuntimeError):
                self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            for job in tuple(self.tasks):
                job.tell(Answer(EndKind.INTERRUPTED, error="given up"))
            self.loop.close()

    def _go_round(self) -> None:
        """Until the loop stops. When it does is our business alone: jobs of other mails are on it."""
        try:
            self.loop.run_forever()
        except (SystemExit, KeyboardInterrupt, GivenUp) as error:
            # sys.exit in a task or callback that a handler has started; whoever waits for that has been told.
            log.warning("handler_stopped_its_loop", error=type(error).__name__)
        except Exception:
            self._may_end = True  # it cannot go round any more: a handler has closed its files
            raise

    def start(self, job: Job) -> None:
        """From the main loop."""
        self._call(lambda: self._spawn(job))

    def _spawn(self, job: Job) -> None:
        task = self.tasks[job] = self.loop.create_task(self._work(job), context=contextvars.Context())
        task.add_done_callback(lambda _task: self._over(job))

    def _over(self, job: Job) -> None:
        self.tasks.pop(job, None)
        self._asked.discard(job)
        job.tell(Answer(EndKind.INTERRUPTED, error="given up"))  # unless told before: it was cancelled before it began

    async def _work(self, job: Job) -> None:
        try:
            with only_here():
                value = await self._handler(job.mail)
            answer = answer_of_return(value)
        except asyncio.CancelledError:
            # Cancelled by us: the one who asked knows why. Raised by the handler itself: an error like any other.
            # Or it has cancelled its own task, which must count, or the mail would be tried without end.
            asked = job in self._asked
            error = None if asked else "CancelledError: raised by the handler itself"
            answer = Answer(EndKind.INTERRUPTED if asked else EndKind.FAILED, error=error)
        # The handler is somebody else's code: whatever it raises, SystemExit included, is its answer.
        except BaseException as error:  # noqa: BLE001 - as said above
            answer = answer_of_error(error)
        job.tell(answer)

    def cancel(self, job: Job) -> None:
        """From the main loop: asks the job to end."""

        def cancel() -> None:
            task = self.tasks.get(job)
            if task is not None:
                self._asked.add(job)
                task.cancel()

        self._call(cancel)

    async def reacts(self) -> bool:
        """Whether the loop comes round within half a second."""
        reaction: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        main = asyncio.get_running_loop()

        def noticed() -> None:
            if not reaction.done():
                reaction.set_result(None)

        def react() -> None:
            with suppress(RuntimeError):
                main.call_soon_threadsafe(noticed)

        self._call(react)
        done, _ = await asyncio.wait({reaction}, timeout=_REACTS_SECONDS)
        return bool(done)

    def current(self) -> Job | None:
        """The job whose code the loop is in right now; meant for a loop that does not react."""
        current = asyncio.current_task(self.loop)
        return next((job for job, task in tuple(self.tasks.items()) if task is current), None)

    def leave(self) -> None:
        """Ends the thread as soon as its loop comes round; what still runs there is cancelled first."""

        async def leave() -> None:
            try:
                others = asyncio.all_tasks() - {asyncio.current_task()}
                for task in others:
                    task.cancel()
                if others:
                    await asyncio.wait(others, timeout=_LEAVE_SECONDS)
                if self._farewell is not None:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LEAVE_SECONDS):
                            await self._farewell()
            finally:
                self.loop.stop()

        def begin() -> None:
            self._may_end = True
            self._asked.update(self.tasks)
            self._leaving = self.loop.create_task(leave())

        self._call(begin)

    def interrupt(self) -> None:
        """Raises GivenUp in whatever Python code the thread runs now."""
        if self.thread.ident is not None and self.thread.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread.ident), ctypes.py_object(GivenUp))

    def _call(self, callback: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(callback)


class LoopExecutor:
    """As `Executor`."""

    can_cancel = True

    def __init__(self, handler: Handler, farewell: Farewell = None) -> None:
        self._handler = cast("Callable[[Mail], Awaitable[object]]", handler)
        self._farewell = farewell
        self._current = _LoopThread(self._handler, farewell)
        self._home: dict[Job, _LoopThread] = {}
        self._left: list[_LoopThread] = []
        self._deaf: set[Job] = set()

    def start(self, mail: Mail) -> Job:
        """As Executor.start."""
        job = Job(asyncio.get_running_loop(), mail)
        if not self._current.thread.is_alive():
            self._current = _LoopThread(self._handler, self._farewell)
        self._home[job] = self._current
        job.future.add_done_callback(lambda _future: self._ended(job))
        self._current.start(job)
        return job

    def _ended(self, job: Job) -> None:
        self._home.pop(job, None)
        self._deaf.discard(job)

    async def end(self, job: Job, patience_seconds: float, *, last: bool = False) -> bool:
        """As Executor.end."""
        home = self._home.get(job)
        if home is None:
            return True
        home.cancel(job)
        await asyncio.wait({job.future}, timeout=patience_seconds)
        if job.future.done():
            return True
        self._deaf.add(job)
        if last or await home.reacts():
            return job.future.done()  # it takes no notice of its cancellation
        hog = home.current()
        if hog is not None and hog is not job:
            job.innocent = True
        elif home is self._current:
            self._replace(home, job)
        return job.future.done()

    def _replace(self, home: _LoopThread, hog: Job) -> None:
        """The loop is blocked: jobs to come get another one, those it was blocking are given back unharmed."""
        log.error("handler_blocks_its_loop", key=hog.mail.key, jobs=len(home.tasks))
        self._current = _LoopThread(self._handler, self._farewell)
        self._left.append(home)
        home.leave()
        home.interrupt()
        for job, each in tuple(self._home.items()):
            if each is home and job is not hog:
                job.innocent = True
                job.tell(Answer(EndKind.INTERRUPTED, error="another handler blocked the event loop they share"))

    @property
    def hung(self) -> int:
        """As Executor.hung."""
        self._left = [thread for thread in self._left if thread.thread.is_alive()]
        deaf = sum(1 for job in self._deaf if self._home.get(job) is self._current)
        return len(self._left) + deaf + self._current.aids.hung

    async def close(self, patience_seconds: float) -> None:
        """As Executor.close."""
        self._current.leave()
        await until_ended([self._current.thread], patience_seconds)
