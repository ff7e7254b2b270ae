"""Deployments: other servers whose questions are listed here, and their threads as they were last seen."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant, Json

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_table(
        "deployments",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("deployment_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("credentials", sa.LargeBinary(), nullable=True),
        sa.Column("graphs", Json, nullable=False),
        sa.Column("stringify_args", sa.Boolean(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("in_file", sa.Boolean(), nullable=False),
        sa.Column("info", Json, nullable=True),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("message", sa.String(), nullable=True),
        sa.Column("failing_since", Instant(), nullable=True),
        sa.Column("synced_at", Instant(), nullable=True),
        sa.Column("leader", sa.String(), nullable=True),
        sa.Column("leader_until", Instant(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "deployment_id", name=op.f("pk_deployments")),
        sa.UniqueConstraint("tenant_id", "name", name=op.f("uq_deployments_tenant_id_name")),
    )
    op.create_table(
        "remote_threads",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("deployment_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("graph_id", sa.String(), nullable=True),
        sa.Column("assistant_id", sa.String(), nullable=True),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("waits", sa.Boolean(), nullable=False),
        sa.Column("settled", sa.Boolean(), nullable=False),
        sa.Column("seen_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "deployment_id"],
            ["deployments.tenant_id", "deployments.deployment_id"],
            name=op.f("fk_remote_threads_tenant_id_deployment_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "deployment_id", "thread_id", name=op.f("pk_remote_threads")),
        sa.UniqueConstraint("tenant_id", "key", name=op.f("uq_remote_threads_tenant_id_key")),
    )
