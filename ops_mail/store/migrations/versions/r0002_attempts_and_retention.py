"""What handlers and retention need to know of a mail beyond the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ops_mail.store.columns import UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLE = "ops_mail_message"
COLUMNS = (
    sa.Column("attempts_forgiven", sa.Integer(), nullable=False, server_default="0"),
    sa.Column("crashes", sa.Integer(), nullable=False, server_default="0"),
    sa.Column("content_removed_at", UtcDateTime()),
)


def upgrade() -> None:
    """Three columns."""
    # Looks first: MySQL commits DDL at once, so this may run again after it was cut off in the middle.
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(TABLE)}
    for column in COLUMNS:
        if column.name not in present:
            op.add_column(TABLE, column.copy())


def downgrade() -> None:
    """Never."""
    raise NotImplementedError("migrations only go forward; restore a backup to go back")
