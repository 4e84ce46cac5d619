"""The database: tables, migrations, the guard, landing, content. Nothing above this package writes SQL for these."""

from ops_mail.store.blobs import BlobStore, DatabaseBlobs
from ops_mail.store.edge import LANDING_SECONDS, STATEMENT_SECONDS
from ops_mail.store.guard import Guard
from ops_mail.store.model import (
    Anchor,
    CursorReport,
    CursorState,
    InstanceState,
    LandingBatch,
    LandingResult,
    Lease,
    PrivilegeReport,
    SchemaState,
    SchemaStatus,
)
from ops_mail.store.store import Store, open_store

__all__ = [
    "LANDING_SECONDS",
    "STATEMENT_SECONDS",
    "Anchor",
    "BlobStore",
    "CursorReport",
    "CursorState",
    "DatabaseBlobs",
    "Guard",
    "InstanceState",
    "LandingBatch",
    "LandingResult",
    "Lease",
    "PrivilegeReport",
    "SchemaState",
    "SchemaStatus",
    "Store",
    "open_store",
]
