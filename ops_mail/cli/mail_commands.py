"""What `dead` and `messages` do, once it is clear which mails are meant."""

from __future__ import annotations

import asyncio
import sys

from ops_mail.cli.choosing import who
from ops_mail.cli.database import opened_store
from ops_mail.cli.mail_lists import history_json, line_json, print_history, print_lines
from ops_mail.cli.quiet import quiet_logs
from ops_mail.cli.raw_mail import raw_sha256
from ops_mail.cli.terminal import printable, write_json
from ops_mail.core.audit_action import AuditAction
from ops_mail.settings import Settings
from ops_mail.store import Store
from ops_mail.store.operating import act_on_dead, history
from ops_mail.store.selection import MailLine, Selection, count_selected, select_lines


def list_command(settings: Settings, selection: Selection, limit: int, *, as_json: bool) -> int:
    """0 also when there is nothing to list."""
    quiet_logs()
    lines = asyncio.run(_lines(settings, selection, limit))
    if as_json:
        write_json([line_json(line) for line in lines])
    elif print_lines(lines) == 0:
        print("No mail fits." if selection.narrowed else "There is none.")
    elif len(lines) == limit:
        print(f"(the newest {limit}; --limit shows more)")
    return 0


def show_command(settings: Settings, name: str, *, as_json: bool) -> int:
    """1 when there is no such mail."""
    quiet_logs()

    async def look() -> int:
        async with opened_store(settings) as store:
            line = await _one(store, name)
            found = None if line is None else await history(store.database, line.message_pk)
        if found is None:
            return _no_such(name)
        if as_json:
            write_json(history_json(found))
        else:
            print_history(found)
        return 0

    return asyncio.run(look())


def raw_command(settings: Settings, name: str) -> int:
    """1 when there is no such mail."""
    quiet_logs()

    async def write() -> int:
        async with opened_store(settings) as store:
            line = await _one(store, name)
            if line is None:
                return _no_such(name)
            sha256 = await raw_sha256(store, line)
            async for piece in store.open_blob(sha256):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return 0

    return asyncio.run(write())


def count_command(settings: Settings, selection: Selection) -> int:
    """How many mails are meant."""
    quiet_logs()

    async def count() -> int:
        async with opened_store(settings) as store:
            return await count_selected(store.database, selection)

    return asyncio.run(count())


def dead_command(settings: Settings, selection: Selection, action: AuditAction) -> int:
    """Does it; how many mails were changed."""

    async def act() -> int:
        async with opened_store(settings) as store:
            return await act_on_dead(store.database, selection, action, who())

    return asyncio.run(act())


async def _lines(settings: Settings, selection: Selection, limit: int) -> list[MailLine]:
    async with opened_store(settings) as store:
        return [line async for line in select_lines(store.database, selection, limit)]


async def _one(store: Store, name: str) -> MailLine | None:
    found = [line async for line in select_lines(store.database, Selection((name,)), 2)]
    return found[0] if len(found) == 1 else None


def _no_such(name: str) -> int:
    sys.stderr.write(f"there is no mail {printable(name)}\n")
    return 1
