"""Whatever a handler raises or does to its thread or loop: its end is told, and the jobs of other mails go on."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from ops_mail.core.outcome import EndKind
from ops_mail.handlers import Content, Discard, Mail, Permanent, RetryLater
from ops_mail.handlers.answering import ERROR_CHARS, Answer, answer_of_error
from ops_mail.handlers.content import ContentSource
from ops_mail.handlers.daemon_executor import DaemonExecutor
from ops_mail.handlers.forks import FORKED
from ops_mail.handlers.jobs import Executor
from ops_mail.handlers.second_loop import LoopExecutor
from ops_mail.handlers.threads import ThreadExecutor


class NoText(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class NoReason(Discard):
    def __str__(self) -> str:
        raise ValueError("no")


class NoSeconds(RetryLater):
    def __init__(self) -> None:
        pass  # without super().__init__ there is no `seconds`


class Endless(Permanent):
    def __str__(self) -> str:
        return "x" * 50_000_000


def later(seconds: object) -> RetryLater:
    return RetryLater("later", seconds=seconds, pause_all=True)  # type: ignore[arg-type] # what a handler may do


RAISED: dict[str, tuple[Callable[[], BaseException], EndKind]] = {
    "exit": (lambda: SystemExit(1), EndKind.FAILED),
    "interrupt": (KeyboardInterrupt, EndKind.FAILED),
    "generator-exit": (GeneratorExit, EndKind.FAILED),
    "stop-iteration": (StopIteration, EndKind.FAILED),
    "no-text": (NoText, EndKind.FAILED),
    "no-reason": (NoReason, EndKind.DISCARDED),
    "no-seconds": (NoSeconds, EndKind.FAILED),
    "seconds-none": (lambda: later(None), EndKind.FAILED),
    "seconds-huge": (lambda: later(10**400), EndKind.FAILED),
    "endless": (Endless, EndKind.PERMANENT),
}


@asynccontextmanager
async def closing(executor: Executor) -> AsyncIterator[Executor]:
    try:
        yield executor
    finally:
        await executor.close(5)


async def answer(executor: Executor) -> Answer:
    async with asyncio.timeout(20):
        return await executor.start(mail()).future


def mail() -> Mail:
    source = ContentSource(asyncio.get_running_loop(), lambda _sha256: pytest.fail("nothing is to be read"))
    return Mail(
        key="a/INBOX/7/1", attempt=1, message_pk=1, mailbox="a", folder="INBOX", uid_validity=7, uid=1,
        message_id=None, subject="", from_name="", from_addr="", to_addrs=(), cc_addrs=(), reply_to=None,
        return_path=None, auth_results=None, sent_at=None, received_at=None, landed_at=datetime.now(UTC),
        size_bytes=0, text_body=None, html_body=None, headers=(), flags=(), defects=(), attachments=(),
        raw=Content(source, None, 0),
    )  # fmt: skip


@pytest.mark.parametrize("name", RAISED)
async def test_whatever_is_raised_is_an_answer(name: str) -> None:
    make, kind = RAISED[name]

    def plain(_mail: Mail) -> None:
        raise make()

    async def on_loop(_mail: Mail) -> None:
        raise make()

    for executor in (ThreadExecutor(plain), LoopExecutor(on_loop)):
        async with closing(executor):
            told = await answer(executor)
            assert told.kind is kind
            assert len(told.error or "") <= ERROR_CHARS
            assert told.retry_after_seconds is None
            assert not told.pause_all


@pytest.mark.parametrize(("asked", "waits"), [(-5, 0.0), (70, 70.0), (float("inf"), float("inf"))])
def test_a_wish_for_later_is_never_in_the_past(asked: float, waits: float) -> None:
    told = answer_of_error(later(asked))
    assert (told.retry_after_seconds, told.pause_all) == (waits, True)
    assert answer_of_error(later(float("nan"))).retry_after_seconds is None


async def test_a_handler_cannot_end_the_loop_it_shares() -> None:
    exits = False

    async def leaves(_mail: Mail) -> str:
        async def other() -> None:
            sys.exit(2)

        if exits:
            await asyncio.gather(other())
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return "still here"

    async with closing(LoopExecutor(leaves)) as executor:
        assert [(await answer(executor)).result for _ in range(2)] == ["still here"] * 2
        exits = True
        for _ in range(2):
            told = await answer(executor)
            assert told.kind is EndKind.FAILED
            assert (told.error or "").startswith("SystemExit: 2")


async def test_a_handler_that_cancels_itself_has_failed_and_one_that_is_cancelled_has_not() -> None:
    async def cancels_itself(_mail: Mail) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async with closing(LoopExecutor(cancels_itself)) as executor:
        assert (await answer(executor)).kind is EndKind.FAILED  # else it would be tried again without end

    begun = threading.Event()

    async def waits(_mail: Mail) -> None:
        begun.set()
        await asyncio.sleep(3600)

    async with closing(LoopExecutor(waits)) as executor:
        job = executor.start(mail())
        assert await executor.end(job, 20), "before it has begun"
        assert (await job.future).kind is EndKind.INTERRUPTED
        job = executor.start(mail())
        await asyncio.to_thread(begun.wait, 20)
        assert await executor.end(job, 20)
        assert (await job.future).kind is EndKind.INTERRUPTED


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 and later say that forks are unwise
@pytest.mark.parametrize("raises", [False, True])
async def test_a_forked_child_never_comes_back_from_a_handler(raises: bool) -> None:
    def forks(_mail: Mail) -> int:
        child = os.fork()
        if child == 0 and raises:
            sys.exit(0)
        return child

    async def on_loop(mail: Mail) -> int:
        return forks(mail)

    for executor in (ThreadExecutor(forks), LoopExecutor(on_loop)):
        async with closing(executor):
            child = (await answer(executor)).result
            _, status = await asyncio.to_thread(os.waitpid, child, 0)
            assert os.waitstatus_to_exitcode(status) == FORKED


async def test_a_thread_that_hangs_for_an_async_handler_is_replaced_and_counted() -> None:
    released, hanging = threading.Event(), DaemonExecutor(2)
    loop = asyncio.get_running_loop()
    calls = [loop.run_in_executor(hanging, released.wait, 60) for _ in range(2)]
    waits = loop.run_in_executor(hanging, threading.current_thread)
    try:
        done, _ = await asyncio.wait([waits], timeout=0.1)
        assert not done, "two threads are all there are"
        for call in calls:
            call.cancel()
        async with asyncio.timeout(20):
            threads = {await waits}
            assert hanging.hung == 2
            threads |= {await loop.run_in_executor(hanging, threading.current_thread) for _ in range(10)}
            assert len(threads) <= 2, "no more than are allowed, beside those that hang"
            released.set()
            while hanging.hung:
                await asyncio.sleep(0.01)
    finally:
        released.set()
        hanging.shutdown()


async def test_a_job_that_outlives_its_loop_is_told_to_have_ended() -> None:
    begun = threading.Event()

    async def deaf(_mail: Mail) -> None:
        begun.set()
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass

    async with closing(LoopExecutor(deaf)) as executor:
        job = executor.start(mail())
        await asyncio.to_thread(begun.wait, 20)
        assert not await executor.end(job, 0.1)
    async with asyncio.timeout(20):
        assert (await job.future).kind is EndKind.INTERRUPTED
