"""Plain functions: each runs in a thread of its own, from a pool that outlives hung ones.

Not `ThreadPoolExecutor`: its threads are waited for at exit, so one that hangs would keep the process for ever.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import inspect
import itertools
import queue
import threading

from ops_mail.core.outcome import EndKind
from ops_mail.handlers.answering import Answer, GivenUp, answer_of_error, answer_of_return
from ops_mail.handlers.forks import only_here
from ops_mail.handlers.jobs import Handler, Job, until_ended
from ops_mail.handlers.mail import Mail

_numbers = itertools.count(1)
_PATIENCE_SECONDS = 0.2


class _Worker:
    """One thread. It ends when it is told to, or after a job that was given up."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._busy = False
        self._given_up = False
        self.thread = threading.Thread(target=self._run, name=f"ops-mail-handler-{next(_numbers)}", daemon=True)
        self.thread.start()

    def give(self, job: Job | None) -> None:
        """The next job; None = no more."""
        if job is not None:
            self._busy = True
        self._jobs.put(job)

    def give_up(self) -> None:
        """Nobody waits for the job any more. If its code is Python (not a call into a library) it ends soon.

        That is the most that can be done: a thread cannot be killed.
        """
        with self._lock:
            self._given_up = True
            if self._busy and self.thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread.ident), ctypes.py_object(GivenUp))
            self._jobs.put(None)  # in case the job has just ended

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            answer = Answer(EndKind.INTERRUPTED, error="given up")
            try:
                answer = contextvars.Context().run(self._work, job.mail)
                with self._lock:
                    self._busy = False
                    leave = self._given_up
            except GivenUp:  # it came when the job had just ended
                leave = True
            finally:
                # Whatever happens: while a job has no answer its mail counts as being worked on.
                job.tell(answer)
            if leave:
                return

    def _work(self, mail: Mail) -> Answer:
        try:
            with only_here():
                value = self._handler(mail)
            if inspect.isawaitable(value):
                if inspect.iscoroutine(value):
                    value.close()
                raise TypeError("the handler returned an awaitable: define it with `async def`")
            return answer_of_return(value)
        # The handler is somebody else's code: whatever it raises, SystemExit included, is its answer.
        except BaseException as error:  # noqa: BLE001 - as said above
            return answer_of_error(error)


class ThreadExecutor:
    """As `Executor`."""

    can_cancel = False

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._idle: list[_Worker] = []
        self._busy: dict[Job, _Worker] = {}
        self._hung: list[_Worker] = []

    def start(self, mail: Mail) -> Job:
        """As Executor.start."""
        job = Job(asyncio.get_running_loop(), mail)
        worker = self._idle.pop() if self._idle else _Worker(self._handler)
        self._busy[job] = worker
        job.future.add_done_callback(lambda _future: self._ended(job))
        worker.give(job)
        return job

    def _ended(self, job: Job) -> None:
        worker = self._busy.pop(job, None)
        if worker is not None:
            self._idle.append(worker)

    async def end(self, job: Job, patience_seconds: float, *, last: bool = False) -> bool:  # noqa: ARG002 - as given
        """As Executor.end."""
        worker = self._busy.pop(job, None)
        if worker is not None and not job.future.done():
            worker.give_up()
            self._hung.append(worker)
            await asyncio.wait({job.future}, timeout=min(patience_seconds, _PATIENCE_SECONDS))
        return job.future.done()

    @property
    def hung(self) -> int:
        """As Executor.hung."""
        self._hung = [worker for worker in self._hung if worker.thread.is_alive()]
        return len(self._hung)

    async def close(self, patience_seconds: float) -> None:
        """As Executor.close."""
        for worker in self._idle:
            worker.give(None)
        waited = [worker.thread for worker in (*self._idle, *self._hung)]
        self._idle = []
        await until_ended(waited, patience_seconds)
