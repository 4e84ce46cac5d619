"""After-actions that are due are found by an index; none is due for mails that landed before there were actions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ops_mail.store.migrations.steps import add_missing_index

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """First the rows, so that a migration that was cut off in the middle does them again."""
    op.execute(sa.text("UPDATE ops_mail_message SET after_action_at = landed_at WHERE after_action_at IS NULL"))
    add_missing_index("ops_mail_message", "ops_mail_message_by_action", ["after_action_at", "id"])


def downgrade() -> None:
    """Never."""
    raise NotImplementedError("migrations only go forward; restore a backup to go back")
