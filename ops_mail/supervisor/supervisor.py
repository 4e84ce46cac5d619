"""Keep every part running: one that crashes is told, restarted with growing pauses, and never takes others along."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from ops_mail.core.backoff import BackoffPolicy
from ops_mail.core.counted import counted
from ops_mail.core.health import Pulse, stuck_reasons
from ops_mail.waiting import sleep_or_stop

log = structlog.get_logger("ops_mail.supervisor")

_RESTART = BackoffPolicy(initial_seconds=1.0, max_seconds=30.0)
_PEACE_SECONDS = 300.0  # a part that ran this long has recovered from earlier crashes
_HOPELESS_CRASHES = 6  # about a minute of restarts; then only a new process can help


@dataclass(slots=True)
class _Part:
    name: str
    run: Callable[[], Awaitable[None]]
    task: asyncio.Task[None] | None = None
    crashes: int = 0
    last_error: str = ""


class Supervisor:
    """Owns the tasks of the process and the pulses by which they prove to be alive."""

    def __init__(self, mono: Callable[[], float], stop: asyncio.Event) -> None:
        self._mono = mono
        self._stop = stop
        self._parts: list[_Part] = []
        self._pulses: list[Pulse] = []

    def pulse(self, name: str) -> Pulse:
        """A new pulse that counts in the health verdict."""
        pulse = Pulse(name, self._mono)
        self._pulses.append(pulse)
        return pulse

    def start(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a part for as long as the process lives; `run` may return only after a stop."""
        part = _Part(name, run)
        part.task = asyncio.create_task(self._keep_running(part), name=name)
        self._parts.append(part)

    def reasons(self) -> list[str]:
        """Why the process counts as stuck; empty while it is alive."""
        hopeless = [
            f"{part.name} has crashed {counted(part.crashes, 'time')} in a row: {part.last_error}"
            for part in self._parts
            if part.crashes >= _HOPELESS_CRASHES
        ]
        dead = [f"{part.name} is not running" for part in self._parts if self._is_dead(part)]
        return [*stuck_reasons(self._pulses, self._mono()), *hopeless, *dead]

    def _is_dead(self, part: _Part) -> bool:
        return part.task is not None and part.task.done() and not self._stop.is_set()

    async def join(self, timeout_seconds: float) -> None:
        """After a stop: wait for all parts, then cancel those that are still running and wait for them briefly."""
        tasks = {part.task for part in self._parts if part.task is not None}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=timeout_seconds)
        for task in late:
            log.warning("part_cancelled", part=task.get_name(), after_seconds=timeout_seconds)
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=1.0)

    async def _keep_running(self, part: _Part) -> None:
        while not self._stop.is_set():
            started = self._mono()
            try:
                await part.run()
                error = "ended without being asked to"
            # The supervising level: whatever a part could not handle must not end the process.
            except Exception as exception:
                error = f"{type(exception).__name__}: {exception}"
                log.exception("part_crashed", part=part.name)
            if self._stop.is_set():
                return
            part.crashes = 1 if self._mono() - started > _PEACE_SECONDS else part.crashes + 1
            part.last_error = error
            delay_seconds = _RESTART.ceiling_seconds(part.crashes)
            log.error("part_restarts", part=part.name, error=error, crashes=part.crashes, in_seconds=delay_seconds)
            await sleep_or_stop(delay_seconds, self._stop)
