"""`ops-mail reparse`: the stored mails are parsed again, after an upgrade that reads mails better."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ops_mail import __version__
from ops_mail.app.spool_root import spool_root
from ops_mail.cli.choosing import who
from ops_mail.cli.database import opened_store
from ops_mail.cli.exit_codes import ExitCode
from ops_mail.cli.quiet import quiet_logs
from ops_mail.cli.reparsing import Failed, Tools, reparse
from ops_mail.cli.terminal import printable
from ops_mail.errors import OpsMailError
from ops_mail.listener.spool import Spool
from ops_mail.mime.pool import ParserPool
from ops_mail.settings import Settings
from ops_mail.store import Store
from ops_mail.store.reparse import ReparseStore
from ops_mail.store.reparse_run import Run, begin_run


def reparse_command(settings: Settings, since: int | None, mailbox: str | None) -> int:
    """1 when a mail could not be parsed; its rows are as they were. 130 after Ctrl-C. Raises OpsMailError."""
    quiet_logs()
    try:
        run = asyncio.run(reparse_mails(settings, since, mailbox))
    except KeyboardInterrupt:
        _tell("stopped; the same command goes on where it was")
        return ExitCode.INTERRUPTED
    except OSError as error:
        raise OpsMailError(f"no room for large mails, or no process for parsing: {error}") from error
    tally = run.tally
    print(f"parsed {tally.parsed}, changed {tally.changed}, skipped {tally.skipped}, failed {tally.failed}")
    if tally.failed:
        more = ", …" if tally.failed > len(run.failed_ids) else ""
        _tell(f"not parsed, and left as they were: {', '.join(map(str, run.failed_ids))}{more}")
    return 1 if tally.failed else 0


async def reparse_mails(settings: Settings, since: int | None, mailbox: str | None) -> Run:
    """The whole run, or what is left of an earlier one. What failed is told on standard error."""
    async with opened_store(settings) as store:
        mails = ReparseStore(store, who())
        if mailbox is not None:
            await _check_name(mails, mailbox)
        until = await mails.last_id()
        run = await begin_run(store.database, mailbox, since, __version__, who())
        if run.resumed:
            _tell(f"going on after mail {run.position}, where an earlier run was cut short (--since 0 starts over)")
        return await _work(settings, store, mails, run, until)


async def _work(settings: Settings, store: Store, mails: ReparseStore, run: Run, until: int) -> Run:
    pool = ParserPool(max_message_bytes=settings.session.max_message_bytes, workers=1)
    with spool_root() as root, _progress(run, until) as bar:
        spool = Spool(root)
        await spool.open()
        try:
            return await reparse(Tools(store.database, mails, pool, spool, bar.failed, bar.moved), run, until)
        finally:
            await pool.close()


async def _check_name(mails: ReparseStore, mailbox: str) -> None:
    known = await mails.mailboxes()
    if mailbox not in known:
        names = ", ".join(map(printable, known)) or "none"
        raise OpsMailError(f"no mail of a mailbox {printable(mailbox)} is in the tables; mailboxes there: {names}")


class _Bar:
    """The progress bar, by ids; it is drawn on a terminal alone."""

    def __init__(self, run: Run, until: int) -> None:
        from rich.console import Console  # noqa: PLC0415 - rich is imported only when it draws
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - as above

        console = Console(stderr=True)
        self.progress = Progress(
            TextColumn("mail {task.completed} of {task.total}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[counts]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self.progress.add_task("", total=max(until, run.position), counts="")
        self.moved(run)

    def moved(self, run: Run) -> None:
        tally = run.tally
        counts = f"changed {tally.changed}, skipped {tally.skipped}, failed {tally.failed}"
        self.progress.update(self._task, completed=run.position, counts=counts)

    def failed(self, one: Failed) -> None:
        line = printable(f"mail {one.message_pk}: {one.reason}")
        if self.progress.disable:
            _tell(line)
        else:
            self.progress.console.print(line, markup=False, highlight=False)


@contextmanager
def _progress(run: Run, until: int) -> Iterator[_Bar]:
    bar = _Bar(run, until)
    with bar.progress:
        yield bar


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
