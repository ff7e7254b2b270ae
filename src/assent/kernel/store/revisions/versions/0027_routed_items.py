"""An index of the items that were routed to a person. Nearly all items are not, and lists need not look for them."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    routed = sa.text("routing IS NOT NULL")
    op.create_index(
        "ix_items_routed", "items", ["tenant_id", "recipient"], sqlite_where=routed, postgresql_where=routed
    )
