"""The owner of an assistant: other agents cannot change it. Existing assistants have no owner."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("assistants", sa.Column("owner", sa.String(), nullable=True))
