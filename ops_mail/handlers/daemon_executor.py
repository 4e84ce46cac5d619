"""What `asyncio.to_thread` and DNS use on the handlers' loop: threads that never keep a process from ending."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_Call = tuple["Future[Any]", Callable[[], Any]]


class DaemonExecutor(ThreadPoolExecutor):
    """A ThreadPoolExecutor to asyncio, which insists on one, with daemon threads that nobody waits for at exit."""

    def __init__(self, max_workers: int) -> None:
        super().__init__(max_workers=1)  # never starts a thread: `submit` is replaced
        self._most = max_workers
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._workers = 0
        self._free = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As ThreadPoolExecutor.submit."""
        future: Future[T] = Future()
        with self._guard:
            if self._free <= 0 and self._workers < self._most:
                self._workers += 1
                threading.Thread(target=self._serve, name="ops-mail-handler-aid", daemon=True).start()
            else:
                self._free -= 1
            self._calls.put((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - as given
        """Threads that are free end; nothing is waited for."""
        with self._guard:
            for _ in range(self._workers):
                self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            future, work = call
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the one who waits for it
                    future.set_exception(error)
            del call, future, work
            with self._guard:
                self._free += 1
