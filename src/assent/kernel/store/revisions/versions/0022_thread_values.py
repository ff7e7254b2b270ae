"""The large values of threads, in pieces. Threads have theirs in their row until the next state is stored."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.create_table(
        "thread_values",
        sa.Column("tenant_id", sa.String, nullable=False),
        sa.Column("thread_id", sa.String, nullable=False),
        sa.Column("n", sa.Integer, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "thread_id", "n", name=op.f("pk_thread_values")),
    )
