"""Store items get an owner and a visibility, as threads have. Existing items have no owner and stay shared."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("memories", sa.Column("owner", sa.String(), nullable=True))
    op.add_column("memories", sa.Column("visibility", sa.String(), server_default="shared", nullable=False))
