"""The child process that parses: `python -m ops_mail.mime.worker`, one job in, one answer out, over its pipes.

Parsing is pure Python and holds the interpreter's lock, and hostile input may run away inside it. A process of its
own keeps the event loop free (promise P9), can be killed, and has a memory limit of its own (promise P6).
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from ops_mail.core.mail import PreparedMail, RawMail
from ops_mail.mime.prepare import PrepareLimits, TimeLimitExceeded, prepare

LENGTH = struct.Struct("!Q")


@dataclass(frozen=True, slots=True)
class Job:
    """Mails to prepare; large contents are read from and written to files under `spool`."""

    mails: tuple[RawMail, ...]
    spool: Path
    limits: PrepareLimits


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise `TimeLimitExceeded` inside the context after `seconds`; main thread only.

    The signal is seen between byte codes and inside `re` matching, so a runaway pattern ends too.
    It repeats every 100 ms in case the first one fell into code that discards exceptions (`__del__`).
    """
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _raise_time_limit(_signal: int, _frame: FrameType | None) -> None:
    raise TimeLimitExceeded


def run_job(job: Job) -> list[PreparedMail]:
    """Prepare every mail of the job, in order."""
    return [prepare(mail, job.spool, job.limits, alarm) for mail in job.mails]


def _limit_memory(limit_bytes: int) -> None:
    """Let a mail that explodes end in MemoryError here instead of in the kernel killing the whole container."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit_bytes = min(limit_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, hard))


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer jobs until the parent closes the pipe (also when it was killed)."""
    while header := requests.read(LENGTH.size):
        (length,) = LENGTH.unpack(header)
        job = pickle.loads(requests.read(length))  # noqa: S301 - from our own parent over a private pipe
        answer = pickle.dumps(run_job(job), protocol=pickle.HIGHEST_PROTOCOL)
        answers.write(LENGTH.pack(len(answer)))
        answers.write(answer)
        answers.flush()


def main() -> None:
    """Take the pipes away from everything else that might print, then serve."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGALRM, _raise_time_limit)
    _limit_memory(int(sys.argv[1]))
    serve(requests, answers)


if __name__ == "__main__":
    main()
