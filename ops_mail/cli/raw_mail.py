"""Where a mail's bytes are, or why there are none."""

from __future__ import annotations

from ops_mail.errors import StoreError
from ops_mail.store import Store
from ops_mail.store.operating import history
from ops_mail.store.selection import MailLine


async def raw_sha256(store: Store, line: MailLine) -> str:
    """The hash under which the mail's bytes are stored. Raises StoreError when they are not there (any more)."""
    found = await history(store.database, line.message_pk)
    if found is None or found.mail.raw_sha256 is None:
        raise StoreError(f"mail {line.message_pk}: the server never gave its bytes out")
    if found.mail.content_removed_at is not None:
        raise StoreError(f"mail {line.message_pk}: its content was removed after OPS_MAIL_RETENTION_DAYS")
    return found.mail.raw_sha256
