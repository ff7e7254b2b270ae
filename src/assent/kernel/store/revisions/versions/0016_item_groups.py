"""Indexes for lists grouped by agent, type or thread, so that a page of a long list reads only its own items. A thread
has few items: they are sorted when they are read. A standing approval may name an agent."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("items", sa.Column("of_thread", sa.String, nullable=False, server_default=""))
    op.execute("UPDATE items SET of_thread = thread_id WHERE thread_id IS NOT NULL")
    for group in ("requester", "kind"):
        for order in (["created_at"], ["ends_at"], ["risk_rank", "created_at"]):
            _index([group, *order])
    _index(["of_thread", "created_at"])
    op.add_column("standing_approvals", sa.Column("agent", sa.String))


def _index(columns: list[str]) -> None:
    named = ["tenant_id", "open", *columns, "item_id"]
    op.create_index(op.f(f"ix_items_{'_'.join(named)}"), "items", named)
