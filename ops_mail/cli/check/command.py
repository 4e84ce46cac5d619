"""The order of the steps, and the time that each may take."""

from __future__ import annotations

import asyncio
import contextlib
import signal

from ops_mail.cli.check.contents import contents_row
from ops_mail.cli.check.database import GROUP, database_rows
from ops_mail.cli.check.database import STEPS as DATABASE_STEPS
from ops_mail.cli.check.mailbox import mailbox_rows, steps_of
from ops_mail.cli.check.port import port_row
from ops_mail.cli.check.push import PUSH_SECONDS
from ops_mail.cli.check.rows import Row, Rows, Verdict, skipped
from ops_mail.cli.check.settings import settings_rows
from ops_mail.cli.quiet import quiet_logs
from ops_mail.cli.terminal import write_json
from ops_mail.settings import MailboxSettings, Role, Settings

_DATABASE_SECONDS = 60.0
_AT_ONCE = 4  # providers refuse many logins at a time


def check_command(settings: Settings, *, as_json: bool, send_test: bool = False) -> int:
    """1 when a step failed."""
    quiet_logs()
    if send_test:
        _end_as_by_ctrl_c()
    rows = asyncio.run(all_rows(settings, send_test=send_test))
    passed = all(row.verdict is not Verdict.FAIL for row in rows)
    if as_json:
        write_json({"ok": passed, "checks": [row.as_json() for row in rows]})
    else:
        from ops_mail.cli.check.table import print_rows  # noqa: PLC0415 - rich is imported only when it draws

        print_rows(rows)
    return 0 if passed else 1


def _end_as_by_ctrl_c() -> None:
    """A shell that is closed, or a service manager, ends the command as Ctrl-C does: a test mail is removed first."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))


async def all_rows(settings: Settings, *, send_test: bool) -> list[Row]:
    """Settings, endpoints, the place for contents, database, then each mailbox."""
    rows = settings_rows(settings)
    rows.append(await port_row(settings.http))
    rows.append(await contents_row(settings.store.store_url))
    rows += await _within(_DATABASE_SECONDS, database_rows(settings), GROUP, DATABASE_STEPS)
    if settings.role is Role.CONSUMER:
        return rows
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(mailbox: MailboxSettings) -> list[Row]:
        async with gate:
            group = f"{mailbox.name}/{mailbox.folder}"
            tried = mailbox_rows(settings, mailbox, send_test=send_test)
            return await _within(_mailbox_seconds(settings), tried, group, steps_of(send_test=send_test))

    for found in await asyncio.gather(*(one(mailbox) for mailbox in settings.mailboxes)):
        rows += found
    return rows


def _mailbox_seconds(settings: Settings) -> float:
    """Each step has its own limit; this one is for a server that keeps just within every one of them."""
    session = settings.session
    return 5 * session.connect_timeout_seconds + 20 * session.command_timeout_seconds + PUSH_SECONDS


async def _within(limit_seconds: float, rows: Rows, group: str, steps: tuple[str, ...]) -> list[Row]:
    found: list[Row] = []
    try:
        async with asyncio.timeout(limit_seconds), contextlib.aclosing(rows):
            async for row in rows:
                found.append(row)  # noqa: PERF401 - what was found before the time is over counts
    except TimeoutError:
        done = {row.step for row in found}
        left = tuple(step for step in steps if step not in done)
        found.append(Row(group, left[0], Verdict.FAIL, f"not done after {limit_seconds:g} s in all", "try again later"))
        found += skipped(group, left[1:], left[0])
    return found
