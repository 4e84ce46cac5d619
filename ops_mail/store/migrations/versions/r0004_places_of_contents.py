"""Where a content is kept, so that it can be told after STORE_URL has changed. Unknown for what is there already."""

from __future__ import annotations

import sqlalchemy as sa

from ops_mail.store.columns import key_text
from ops_mail.store.migrations.steps import add_missing

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One column."""
    add_missing("ops_mail_blob", sa.Column("place", key_text(512)))


def downgrade() -> None:
    """Never."""
    raise NotImplementedError("migrations only go forward; restore a backup to go back")
