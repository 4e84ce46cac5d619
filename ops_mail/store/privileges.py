"""What the account may do, read from its grants: nothing is tried out on a table."""

from __future__ import annotations

from ops_mail.store.database import Database
from ops_mail.store.model import PrivilegeReport


async def read_privileges(database: Database, forbidden_tables: tuple[str, ...]) -> PrivilegeReport:
    """SQLite has no accounts: its report is empty."""
    return PrivilegeReport()
