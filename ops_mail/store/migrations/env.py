"""Runs migrations on the connection that `ops_mail.store.migrate` hands in; there is no other way to run them."""

from typing import Any

import structlog
from alembic import context

from ops_mail.store.schema import VERSION_TABLE

log = structlog.get_logger("ops_mail.database")


def _tell(ctx: Any, step: Any, heads: Any, run_args: Any) -> None:  # noqa: ARG001 - alembic passes all by these names
    log.info("migration_applied", revision=step.up_revision_id, what=step.up_revision.doc)


context.configure(
    on_version_apply=_tell,
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    transactional_ddl=context.config.attributes["connection"].dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
