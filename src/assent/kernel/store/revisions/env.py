"""Alembic's entry point: uses the connection, and the transaction, that `assent.kernel.store.migrations` opened."""

from alembic import context

from assent.kernel.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
