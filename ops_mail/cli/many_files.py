"""Work on many files: on all processors, answers in the order of the files, memory bounded."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context

from ops_mail.cli.terminal import json_line

_FEW = 32  # starting processes costs more than this many mails
_BATCH = 8
_AHEAD = 3  # batches a process may be ahead of what has been printed


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be printed for one file."""

    line: bytes
    failed: bool


Work = Callable[[str], Outcome]


def in_order(work: Work, names: Sequence[str]) -> Iterator[Outcome]:
    """`work` on each name. A file that kills the process it is worked on in is reported; the others are not touched."""
    processes = len(os.sched_getaffinity(0))
    if len(names) <= _FEW or processes == 1:
        yield from map(work, names)
        return
    batches = [list(names[start : start + _BATCH]) for start in range(0, len(names), _BATCH)]
    done = 0
    while done < len(batches):
        try:
            for outcomes in _batches_in_order(work, batches[done:], processes):
                done += 1
                yield from outcomes
        except BrokenProcessPool:
            yield from (_alone(work, name) for name in batches[done])
            done += 1


def _batches_in_order(work: Work, batches: Sequence[list[str]], processes: int) -> Iterator[list[Outcome]]:
    waiting: deque[Future[list[Outcome]]] = deque()
    with _pool(processes) as pool:
        try:
            for batch in batches:
                waiting.append(pool.submit(_work_batch, work, batch))
                if len(waiting) > processes * _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _alone(work: Work, name: str) -> Outcome:
    try:
        with _pool(1) as pool:
            return pool.submit(work, name).result()
    except BrokenProcessPool:
        return Outcome(
            json_line({"file": name, "error": "the parser was killed, probably for want of memory"}), failed=True
        )


def _work_batch(work: Work, names: list[str]) -> list[Outcome]:
    return [work(name) for name in names]


def _pool(processes: int) -> ProcessPoolExecutor:
    # Forked before any thread of ours exists: the parser's modules are there at once.
    return ProcessPoolExecutor(processes, mp_context=get_context("fork"))
