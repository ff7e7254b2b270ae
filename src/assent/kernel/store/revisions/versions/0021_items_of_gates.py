"""Finds the open questions of gates elsewhere by their deployment: an interrupt id alone identifies none."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.drop_index("ix_items_of_gates", "items")
    only = sa.text("open AND origin IS NOT NULL")
    op.create_index("ix_items_of_gates", "items", ["tenant_id", "deployment"], sqlite_where=only, postgresql_where=only)
