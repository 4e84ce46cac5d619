"""`ops-mail migrate`."""

from __future__ import annotations

import asyncio

from ops_mail.cli.database import opened_store
from ops_mail.cli.quiet import quiet_logs
from ops_mail.settings import Settings


def migrate_command(settings: Settings) -> int:
    """Applies what is missing and names it."""
    quiet_logs()
    applied = asyncio.run(_migrate(settings))
    if applied:
        print(f"Applied {', '.join(applied)}.")
    else:
        print("The tables are up to date.")
    return 0


async def _migrate(settings: Settings) -> list[str]:
    async with opened_store(settings, create=True) as store:
        return list(await store.migrate())
