"""Webhooks of deployments: the hash of their secret, and the last call."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.add_column("deployments", sa.Column("webhook_hash", sa.String()))
    op.add_column("deployments", sa.Column("called_at", Instant()))
    op.create_index("ix_deployments_webhook_hash", "deployments", ["webhook_hash"], unique=True)
