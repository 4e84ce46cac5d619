"""Who has a folder's lock on the server."""

from __future__ import annotations

import sqlalchemy as sa

from ops_mail.core.guardname import guard_name
from ops_mail.core.ids import FolderKey
from ops_mail.store import Store


async def lock_connection(store: Store, key: FolderKey) -> int:
    """The id of the session that holds it, for KILL."""
    async with store.engine.connect() as connection:
        name = guard_name(str(store.engine.url.database), key)
        return int((await connection.execute(sa.text("SELECT IS_USED_LOCK(:name)"), {"name": name})).scalar_one())
