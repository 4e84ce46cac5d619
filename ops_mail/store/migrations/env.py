"""Runs migrations on the connection that `ops_mail.store.migrate` hands in; there is no other way to run them."""

from alembic import context

from ops_mail.store.schema import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    transactional_ddl=context.config.attributes["connection"].dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
