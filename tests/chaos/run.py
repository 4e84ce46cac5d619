"""One run: step by step faults while mails arrive, a probe after each, the comparison at the end."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos.faults import inflict
from tests.chaos.plan import Step, draw_mail, draw_steps
from tests.chaos.report import Report
from tests.chaos.world import World, world
from tests.servers.process import SqlServer

RECOVERY_SECONDS = 120.0
"""Longer than anything may take: a run that waits for so long has found a bug."""


class NotRecovered(Exception):
    """A mail did not land in time; the message holds the logs' ends."""


async def run(
    seed: int, faults: int, mails: int, server: SqlServer, folder: Path, say: Callable[[str], None] = lambda _: None
) -> Report:
    """Raises NotRecovered when the product does not come back after a fault."""
    started = time.monotonic()
    report = Report(seed, type(server).__name__)
    async with world(folder, server) as at:
        mailing = _Mailing(at, seed)
        await mailing.probe()
        for step in draw_steps(seed, faults, mails):
            await _take(at, step, mailing, report)
            say(f"{report.faults.total()}/{faults} faults, {mailing.number} mails")
        await _settle(at)
        report.compare(at.expected(), at.tables.hashes())
        report.epochs = at.tables.cursor()["epoch"]
        for instance in at.instances:
            await asyncio.to_thread(instance.terminate)
            report.unclean_exits += [code for code in instance.exit_codes if code != 0]
    report.seconds = time.monotonic() - started
    return report


async def _take(at: World, step: Step, mailing: _Mailing, report: Report) -> None:
    async with asyncio.TaskGroup() as together:
        together.create_task(mailing.send(step.mails))
        for fault in step.faults:
            together.create_task(inflict(at, fault))
    seconds = await mailing.probe()
    report.faults.update(fault.kind.value for fault in step.faults)
    report.recoveries.append((step.group, tuple(fault.kind.value for fault in step.faults), seconds))


class _Mailing:
    """The correspondents: they send, and try again when the server is away."""

    def __init__(self, at: World, seed: int) -> None:
        self._at = at
        self._seed = seed
        self.number = 0

    async def send(self, count: int) -> None:
        """In small groups, so that some arrive before, during and after a fault."""
        while count > 0:
            group = min(count, 8)
            await self._append(group)
            count -= group
            await asyncio.sleep(0.05)

    async def probe(self) -> float:
        """Send one mail and wait for its row: the seconds that took."""
        started = time.monotonic()
        raw = await self._append(1)
        sha256 = hashlib.sha256(raw).hexdigest()
        while not await asyncio.to_thread(self._at.has_row, sha256):
            if time.monotonic() - started > RECOVERY_SECONDS:
                raise NotRecovered("\n\n".join(one.alive.explain() for one in self._at.instances))
            await asyncio.sleep(0.02)
        return time.monotonic() - started

    async def _append(self, count: int) -> bytes:
        raws = [draw_mail(self._seed, self.number + place) for place in range(count)]
        self.number += count
        limit = time.monotonic() + RECOVERY_SECONDS
        while not await asyncio.to_thread(self._at.append, raws):
            if time.monotonic() > limit:
                raise NotRecovered(f"Dovecot takes no mail:\n{self._at.dovecot.log()[-2000:]}")
            await asyncio.sleep(0.1)
        return raws[-1]


async def _settle(at: World) -> None:
    """Until the tables hold as many mails as there were; in vain when some are lost."""
    wanted = (await asyncio.to_thread(at.expected)).total()
    limit = time.monotonic() + RECOVERY_SECONDS
    while at.tables.count() < wanted and time.monotonic() < limit:
        await asyncio.sleep(0.2)
    await asyncio.sleep(1)  # and whatever might still come on top
