"""What alembic runs for each migration: on the connection that `schema.py` opened, all in its
transaction."""

from alembic import context

from linkgauge.history.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table=context.config.attributes["version_table"],
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
