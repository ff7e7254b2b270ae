"""Saved views, and the indexes for the items of a graph or an assistant."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "inboxes",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("inbox_id", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("filter", sa.String(), nullable=False),
        sa.Column("graph_id", sa.String(), nullable=True),
        sa.Column("url", sa.String(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "inbox_id", name=op.f("pk_inboxes")),
        sa.UniqueConstraint("tenant_id", "owner", "position", name=op.f("uq_inboxes_tenant_id_owner_position")),
    )
    for column in ("graph_id", "assistant_id", "execution"):
        op.create_index(
            op.f(f"ix_items_tenant_id_{column}_open_created_at_item_id"),
            "items",
            ["tenant_id", column, "open", "created_at", "item_id"],
            unique=False,
        )
