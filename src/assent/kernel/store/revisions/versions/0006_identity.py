"""Keys belong to a named agent or service, which outlives each of them; and the last signed head of each timeline."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("principal_id", sa.String(), nullable=True))
    op.execute("UPDATE api_keys SET principal_id = key_id WHERE kind <> 'reviewer'")
    op.create_table(
        "audit_anchors",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_audit_anchors")),
    )
