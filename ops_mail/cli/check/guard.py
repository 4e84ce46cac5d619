"""Who holds each folder, looked at from outside: no lock is taken and no row is made."""

from __future__ import annotations

import sqlalchemy as sa

from ops_mail.cli.check.rows import Row, Verdict
from ops_mail.core.guardname import guard_name
from ops_mail.core.ids import FolderKey
from ops_mail.settings import Role, Settings
from ops_mail.store import CursorState, Store


async def guard_rows(settings: Settings, store: Store, group: str, step: str, *, has_tables: bool) -> list[Row]:
    """A row for each folder of the settings. Raises StoreError."""
    if settings.role is Role.CONSUMER or not settings.mailboxes:
        return [Row(group, step, Verdict.SKIPPED, "nothing to listen to")]
    cursors = {cursor.key: cursor for cursor in await store.list_cursors()} if has_tables else {}
    rows = []
    for mailbox in settings.mailboxes:
        key = FolderKey(mailbox.name, mailbox.folder)
        locked = await _locked(store, key) if store.dialect == "mysql" else None
        rows.append(Row(group, step, Verdict.OK, _told(key, cursors.get(key), locked=locked)))
    return rows


async def _locked(store: Store, key: FolderKey) -> bool:
    async with store.database.reading("looking at the guard") as connection:
        schema = str((await connection.execute(sa.text("SELECT DATABASE()"))).scalar_one())
        free = sa.text("SELECT IS_FREE_LOCK(:name)")
        return bool((await connection.execute(free, {"name": guard_name(schema, key)})).scalar_one() == 0)


def _told(key: FolderKey, cursor: CursorState | None, *, locked: bool | None) -> str:
    holder = cursor.holder if cursor is not None and cursor.lease_live else None
    if holder is not None and locked is not False:
        return f"{key} is held by {holder}; another instance would stand by"
    if locked:
        return f"{key} is locked by a session that has not told its name yet"
    if holder is not None:
        return f"{key} is free; {holder} has just let it go"
    return f"{key} is free"
