"""Threads get an owner, a visibility and contributors; runs name the breakpoint that a decision lets them pass.

Threads of earlier versions belong to the actor of their first run and stay shared, as they were.
"""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("threads", sa.Column("owner", sa.String(), nullable=True))
    op.add_column("threads", sa.Column("visibility", sa.String(), server_default="shared", nullable=False))
    op.add_column("threads", sa.Column("turn_ended_at", Instant(), nullable=True))
    op.create_table(
        "contributors",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "thread_id", "actor", name=op.f("pk_contributors")),
    )
    op.add_column("runs", sa.Column("passes", sa.String(), nullable=True))
    op.execute(
        "UPDATE threads SET owner = (SELECT runs.actor FROM runs WHERE runs.tenant_id = threads.tenant_id "
        "AND runs.thread_id = threads.thread_id AND runs.actor <> 'system' "
        "ORDER BY runs.created_at, runs.run_id LIMIT 1)"
    )
