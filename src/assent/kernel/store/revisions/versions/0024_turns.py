"""The answer that is sent to a thread of a deployment: one at a time."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    op.add_column("remote_threads", sa.Column("turn", sa.String()))
    op.add_column("remote_threads", sa.Column("turn_until", Instant()))
