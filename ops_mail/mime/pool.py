"""The parent's side of the parsing processes: jobs in, prepared mails out, runaways killed and isolated."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog

from ops_mail.core.mail import PreparedMail, RawMail
from ops_mail.mime.prepare import PrepareLimits, quarantine
from ops_mail.mime.worker import LENGTH, Job

log = structlog.get_logger("ops_mail.mime")

_MARGIN_SECONDS = 20.0  # reading, hashing and compressing a mail of the largest size on a busy machine
_MEMORY_BASE_BYTES = 512 * 1024 * 1024
_MEMORY_FACTOR = 12  # raw, decoded parts, texts and their copies while parsing, with room to spare


class WorkerDied(Exception):
    """The child ended or was killed before it answered."""


class _Worker:
    """One child process; a job at a time."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            # A session of its own: Ctrl-C in the terminal must reach the parent alone, which then stops in order.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "ops_mail.mime.worker",
                str(self._memory_bytes),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                # Hostile bytes are parsed there; it gets none of our secrets.
                env={name: value for name, value in os.environ.items() if not name.startswith("OPS_MAIL_")},
                limit=1024 * 1024,
            )
        return self._process

    async def call(self, job: Job, timeout_seconds: float) -> list[PreparedMail]:
        """Raises `WorkerDied`; whatever goes wrong, the child is not used again."""
        process = await self.start()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes above
        try:
            async with asyncio.timeout(timeout_seconds):
                request = await asyncio.to_thread(pickle.dumps, job, pickle.HIGHEST_PROTOCOL)
                process.stdin.write(LENGTH.pack(len(request)))
                process.stdin.write(request)
                await process.stdin.drain()
                (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
                answer = await process.stdout.readexactly(length)
                prepared: list[PreparedMail] = await asyncio.to_thread(pickle.loads, answer)
                return prepared
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            await self._bury(process, error)
            raise WorkerDied(f"the parsing process {_fate(process, error)}") from error
        except BaseException:  # cancelled in the middle of a job: its answer must not meet the next one
            await asyncio.shield(self.kill())
            raise

    async def _bury(self, process: asyncio.subprocess.Process, error: Exception) -> None:
        """The end of a child that failed: one that closed its pipes is ending by itself and has a code to tell."""
        if not isinstance(error, TimeoutError):
            try:
                async with asyncio.timeout(1.0):
                    await process.wait()
            except TimeoutError:
                log.debug("parser_lingers", pid=process.pid)
        await self.kill()

    async def kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        await process.wait()

    async def close(self) -> None:
        """End an idle child by closing its pipe; kill one that does not go."""
        process = self._process
        if process is None or process.returncode is not None or process.stdin is None:
            return
        process.stdin.close()
        try:
            async with asyncio.timeout(1.0):
                await process.wait()
        except TimeoutError:
            await self.kill()


def _fate(process: asyncio.subprocess.Process, error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "did not answer in time"
    return f"ended unexpectedly (exit code {process.returncode})"


class ParserPool:
    """A few parsing processes shared by all mailboxes; each mailbox has at most one job at a time in it."""

    def __init__(self, *, max_message_bytes: int, workers: int = 2, limits: PrepareLimits | None = None) -> None:
        self._limits = limits or PrepareLimits()
        memory_bytes = _MEMORY_BASE_BYTES + _MEMORY_FACTOR * max_message_bytes
        self._all = [_Worker(memory_bytes) for _ in range(workers)]
        self._idle: asyncio.LifoQueue[_Worker] = asyncio.LifoQueue()
        for worker in self._all:
            self._idle.put_nowait(worker)

    async def warm(self) -> None:
        """Start the first child ahead of the first mail. Raises OSError when the machine cannot start a process."""
        await self._all[-1].start()

    async def prepare(self, mails: Sequence[RawMail], spool: Path) -> list[PreparedMail]:
        """One prepared mail for each raw one, in order; a mail that kills its parser comes back quarantined.

        Raises OSError when no process can be started or the spool cannot be written: no mail's fault.
        """
        try:
            return await self._call(mails, spool)
        except WorkerDied as error:
            log.warning("parser_died", mails=len(mails), error=str(error))
        return [await self._prepare_alone(mail, spool) for mail in mails]

    async def _prepare_alone(self, mail: RawMail, spool: Path) -> PreparedMail:
        try:
            return (await self._call([mail], spool))[0]
        except WorkerDied as error:
            log.error("mail_kills_parser", uid=mail.listed.uid, error=str(error))
            return await asyncio.to_thread(quarantine, mail, spool, str(error))

    async def _call(self, mails: Sequence[RawMail], spool: Path) -> list[PreparedMail]:
        worker = await self._idle.get()
        try:
            return await worker.call(Job(tuple(mails), spool, self._limits), self._job_seconds(len(mails)))
        finally:
            self._idle.put_nowait(worker)

    def _job_seconds(self, mails: int) -> float:
        return _MARGIN_SECONDS + mails * (self._limits.mail_seconds + self._limits.header_seconds)

    def limit_seconds(self, mails: int) -> float:
        """The longest that `prepare` may take: waiting for a free child, the job, then each mail alone."""
        return 2 * self._job_seconds(mails) + mails * self._job_seconds(1)

    async def close(self) -> None:
        """End all children; within about a second."""
        await asyncio.gather(*(worker.close() for worker in self._all))
