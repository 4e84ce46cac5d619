"""The work of `ops-mail reparse`: bytes out of the store, through a parsing process, differing rows back.

Memory is bounded by the batch: large contents go through files, and a large mail is a batch of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ops_mail.core.mail import PreparedMail, RawMail
from ops_mail.errors import StoreRefused
from ops_mail.listener.spool import Spool
from ops_mail.mime.pool import ParserPool
from ops_mail.store.database import Database
from ops_mail.store.reparse import Candidate, ReparseStore, Written
from ops_mail.store.reparse_run import Run, Tally, after_batch, save_run

Result = TypeVar("Result")

PAGE = 400
BATCH_MAILS = 50
BATCH_BYTES = 8 * 1024 * 1024
IN_MEMORY_BYTES = 1024 * 1024
_ANY_SIZE = 1 << 62  # what is in the store was small enough once
_READERS = 4


@dataclass(frozen=True, slots=True)
class Failed:
    """A mail whose rows are as they were, and why."""

    message_pk: int
    reason: str


@dataclass(frozen=True, slots=True)
class Tools:
    """What a run works with. `tell` hears of each mail that failed, `moved` of each batch that is through."""

    database: Database
    store: ReparseStore
    pool: ParserPool
    spool: Spool
    tell: Callable[[Failed], None]
    moved: Callable[[Run], None]


async def reparse(tools: Tools, run: Run, until: int) -> Run:
    """Goes on with `run` up to the mail `until` and returns it finished; its place is stored after each batch.

    Raises StoreError, TakenOver, or OSError when the disk or the parsing processes give out.
    """
    while page := await tools.store.page(run.position, until, run.mailbox, PAGE):
        for batch in batches(page):
            tally, failed = await _reparse_batch(tools, batch)
            for one in failed:
                tools.tell(one)
            run = after_batch(run, batch[-1].message_pk, tally, tuple(one.message_pk for one in failed))
            await save_run(tools.database, run)
            tools.moved(run)
    run = replace(run, position=max(run.position, until))
    await save_run(tools.database, run, finished=True)
    tools.moved(run)
    return run


def batches(mails: Sequence[Candidate]) -> Iterator[Sequence[Candidate]]:
    """Groups small enough to hold in memory at once; a mail that alone is more than that is a group of its own."""
    start, room = 0, BATCH_BYTES
    for index, mail in enumerate(mails):
        if index > start and (index - start == BATCH_MAILS or mail.listed.size_bytes > room):
            yield mails[start:index]
            start, room = index, BATCH_BYTES
        room -= mail.listed.size_bytes
    yield mails[start:]


async def _reparse_batch(tools: Tools, batch: Sequence[Candidate]) -> tuple[Tally, list[Failed]]:
    found = await _read(tools, [mail for mail in batch if mail.raw_sha256 is not None])
    failed = [one for _, one in found if isinstance(one, Failed)]
    raws = [(mail, one) for mail, one in found if isinstance(one, RawMail)]
    prepared = await tools.pool.prepare([raw for _, raw in raws], tools.spool.path) if raws else []
    parsed: list[tuple[Candidate, PreparedMail]] = []
    for (mail, _), new in zip(raws, prepared, strict=True):
        # What is in the row is better than what this attempt leaves of the mail.
        if new.error is not None:
            failed.append(Failed(mail.message_pk, new.error))
        else:
            parsed.append((mail, new))
    differing = await tools.store.differing(parsed) if parsed else []
    written, refused = await _write(tools.store, differing)
    await tools.spool.discard([raw for _, raw in raws], prepared)
    failed += refused
    good = len(parsed) - len(refused) - written.count(Written.GONE)
    return Tally(good, written.count(Written.CHANGED), len(batch) - good - len(failed), len(failed)), failed


async def _write(
    store: ReparseStore, mails: Sequence[tuple[Candidate, PreparedMail]]
) -> tuple[list[Written], list[Failed]]:
    """All together; one by one when the database refuses one of them, so that the others do not pay for it."""
    if not mails:
        return [], []
    try:
        return await store.write(mails), []
    except StoreRefused as error:
        if len(mails) == 1:
            return [], [Failed(mails[0][0].message_pk, str(error))]
    written: list[Written] = []
    refused: list[Failed] = []
    for mail in mails:
        done, failed = await _write(store, [mail])
        written += done
        refused += failed
    return written, refused


async def _read(tools: Tools, mails: Sequence[Candidate]) -> list[tuple[Candidate, RawMail | Failed | None]]:
    """Each mail's bytes; None for one that lost them since it was listed."""
    at_once = asyncio.Semaphore(_READERS)

    async def read(mail: Candidate) -> tuple[Candidate, RawMail | Failed | None]:
        async with at_once:
            return mail, await _read_one(tools, mail)

    results = await asyncio.gather(*map(read, mails), return_exceptions=True)  # all have ended before one is raised
    return [_or_raise(result) for result in results]


def _or_raise(result: Result | BaseException) -> Result:
    if isinstance(result, BaseException):
        raise result
    return result


async def _read_one(tools: Tools, mail: Candidate) -> RawMail | Failed | None:
    assert mail.raw_sha256 is not None  # noqa: S101 - such mails are not read
    try:
        content = await _content(tools.store.content(mail.raw_sha256), tools.spool)
    except StoreRefused as error:
        return Failed(mail.message_pk, str(error)) if await tools.store.has_bytes(mail) else None
    return RawMail(mail.listed, content, mail.oversize)


async def _content(pieces: AsyncIterator[bytes], spool: Spool) -> bytes | Path:
    """The bytes themselves, or a file with them when they are many."""
    async with aclosing(pieces) as stream:  # type: ignore[type-var]  # an async generator at run time
        start = bytearray()
        async for piece in stream:
            start += piece
            if len(start) > IN_MEMORY_BYTES:
                return await spool.write(_joined(bytes(start), stream), _ANY_SIZE, _nothing)
    return bytes(start)


async def _joined(start: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield start
    async for piece in rest:
        yield piece


def _nothing() -> None:
    """Nobody watches the progress of one file."""
