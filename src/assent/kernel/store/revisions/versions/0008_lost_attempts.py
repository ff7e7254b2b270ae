"""The number of a run's attempts that ended with their process: a run that kills its process is not retried forever."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("runs", sa.Column("lost", sa.Integer(), nullable=False, server_default="0"))
