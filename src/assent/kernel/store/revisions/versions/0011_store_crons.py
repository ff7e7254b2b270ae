"""Store items get an owner and a visibility, as threads have; existing items have no owner and stay shared. Crons."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant, Json

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("memories", sa.Column("owner", sa.String(), nullable=True))
    op.add_column("memories", sa.Column("visibility", sa.String(), server_default="shared", nullable=False))
    op.create_table(
        "crons",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("cron_id", sa.String(), nullable=False),
        sa.Column("assistant_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=True),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("visibility", sa.String(), nullable=False),
        sa.Column("mandate", Json, nullable=False),
        sa.Column("schedule", sa.String(), nullable=False),
        sa.Column("timezone", sa.String(), nullable=True),
        sa.Column("end_time", Instant(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("on_run_completed", sa.String(), nullable=True),
        sa.Column("payload", Json, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("next_run_at", Instant(), nullable=True),
        sa.Column("last_run_id", sa.String(), nullable=True),
        sa.Column("last_due_at", Instant(), nullable=True),
        sa.Column("missed", sa.Integer(), nullable=False),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "thread_id"],
            ["threads.tenant_id", "threads.thread_id"],
            name=op.f("fk_crons_tenant_id_thread_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "assistant_id"],
            ["assistants.tenant_id", "assistants.assistant_id"],
            name=op.f("fk_crons_tenant_id_assistant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "cron_id", name=op.f("pk_crons")),
    )
    for columns in (
        ["next_run_at"],
        ["tenant_id", "created_at", "cron_id"],
        ["tenant_id", "thread_id"],
        ["tenant_id", "assistant_id"],
    ):
        op.create_index(op.f(f"ix_crons_{'_'.join(columns)}"), "crons", columns, unique=False)
