"""The registry of agents, which begins with the agents that have keys, and the runs whose work is reviewed."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant, Json

revision = "0015"
down_revision = "0014"

_REVIEWED = sa.text("workspace_run_id IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "agents",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("parent_id", sa.String(), nullable=True),
        sa.Column("human_id", sa.String(), nullable=True),
        sa.Column("source", sa.String(), nullable=False, server_default="user"),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "agent_id", name=op.f("pk_agents")),
    )
    op.create_index(op.f("ix_agents_tenant_id_name_agent_id"), "agents", ["tenant_id", "name", "agent_id"])
    op.create_index(op.f("ix_agents_tenant_id_parent_id"), "agents", ["tenant_id", "parent_id"])
    op.execute(
        "INSERT INTO agents (tenant_id, agent_id, name, created_at, updated_at)"
        " SELECT tenant_id, principal_id, min(name), min(created_at), min(created_at) FROM api_keys"
        " WHERE kind = 'agent' AND principal_id IS NOT NULL GROUP BY tenant_id, principal_id"
    )
    op.add_column("items", sa.Column("workspace_run_id", sa.String(), nullable=True))
    op.add_column("items", sa.Column("routing", Json, nullable=True))
    op.create_index(
        "ix_items_one_workspace_review",
        "items",
        ["tenant_id", "workspace_run_id"],
        unique=True,
        sqlite_where=_REVIEWED,
        postgresql_where=_REVIEWED,
    )
