"""What `asyncio.to_thread` and DNS use on the handlers' loop: threads that never keep a process from ending."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Call(Future[Any]):
    """One call. Cancelled while it runs (its handler was over its time) it goes on, but its thread is replaced."""

    def __init__(self, work: Callable[[], Any], abandon: Callable[[_Call], None]) -> None:
        super().__init__()
        self.work = work
        self.over = False
        self._abandon = abandon

    def cancel(self) -> bool:
        """As Future.cancel."""
        cancelled = super().cancel()
        if not cancelled:
            self._abandon(self)
        return cancelled


class DaemonExecutor(ThreadPoolExecutor):
    """A ThreadPoolExecutor to asyncio, which insists on one, with daemon threads that nobody waits for at exit.

    At most `max_workers` threads work for those who still wait; `hung` counts those beside them.
    """

    def __init__(self, max_workers: int) -> None:
        super().__init__(max_workers=1)  # never starts a thread: `submit` is replaced
        self._most = max_workers
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._abandoned: set[_Call] = set()
        self._workers = 0
        self._free = 0  # idle workers, less the calls that wait for one

    @property
    def hung(self) -> int:
        """Calls that nobody waits for any more and that still run."""
        return len(self._abandoned)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As ThreadPoolExecutor.submit."""
        call = _Call(lambda: fn(*args, **kwargs), self._abandon)
        with self._guard:
            self._free -= 1
            self._calls.put(call)
            self._start_if_needed()
        return call

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - as given
        """Threads that are free end; nothing is waited for."""
        with self._guard:
            for _ in range(self._workers):
                self._calls.put(None)

    def _start_if_needed(self) -> None:
        if self._free < 0 and self._workers < self._most:
            self._workers += 1
            self._free += 1
            threading.Thread(target=self._serve, name="ops-mail-handler-aid", daemon=True).start()

    def _abandon(self, call: _Call) -> None:
        with self._guard:
            if call.over or call in self._abandoned:
                return
            self._abandoned.add(call)
            self._workers -= 1
            self._start_if_needed()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            if call.set_running_or_notify_cancel():
                try:
                    call.set_result(call.work())
                except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the one who waits for it
                    call.set_exception(error)
            with self._guard:
                call.over = True
                if call in self._abandoned:
                    self._abandoned.discard(call)
                    return  # another thread has taken this one's place
                self._free += 1
            del call
