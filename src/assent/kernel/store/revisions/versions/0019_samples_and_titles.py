"""Sample data is marked, and an item whose title comes from a template keeps the names of its calls."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.add_column("items", sa.Column("called", sa.String, nullable=False, server_default=""))
    op.add_column("items", sa.Column("sample", sa.Boolean, nullable=False, server_default=sa.false()))
    only = sa.text("sample")
    op.create_index("ix_items_sample", "items", ["tenant_id", "created_at"], sqlite_where=only, postgresql_where=only)
