"""The parts that checkpoints of a thread share, and the size of a checkpoint with its parts. Earlier checkpoints stay
as they are, each with its whole state, and are read as before."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("checkpoints", sa.Column("size", sa.BigInteger, nullable=False, server_default="0"))
    op.execute("UPDATE checkpoints SET size = length(checkpoint)")
    op.create_table(
        "checkpoint_parts",
        sa.Column("tenant_id", sa.String, nullable=False),
        sa.Column("thread_id", sa.String, nullable=False),
        sa.Column("name", sa.LargeBinary, nullable=False),
        sa.Column("type", sa.String, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "thread_id", "name", name=op.f("pk_checkpoint_parts")),
    )
