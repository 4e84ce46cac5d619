"""What handlers and retention need to know of a mail beyond the first tables."""

from __future__ import annotations

import sqlalchemy as sa

from ops_mail.store.columns import UtcDateTime
from ops_mail.store.migrations.steps import add_missing

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Three columns."""
    add_missing(
        "ops_mail_message",
        sa.Column("attempts_forgiven", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("crashes", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("content_removed_at", UtcDateTime()),
    )


def downgrade() -> None:
    """Never."""
    raise NotImplementedError("migrations only go forward; restore a backup to go back")
