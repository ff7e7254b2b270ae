"""The revision of an answer without a hash: the one shown to its author, and the one asked under its id."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("items", sa.Column("reworded", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("item_marks", sa.Column("shown_revision", sa.Integer(), nullable=True))
