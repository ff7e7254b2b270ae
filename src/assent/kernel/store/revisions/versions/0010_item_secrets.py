"""The secret texts of an item, stored with it, so that a thread's texts are masked without reading all revisions. For
existing items they are collected when needed."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Json

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("items", sa.Column("secrets", Json, nullable=True))
