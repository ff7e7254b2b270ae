"""Gates in processes of their own: where they ask, which attempt uses a grant, and until when it is alive."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.add_column("items", sa.Column("origin", sa.String()))
    only = sa.text("origin IS NOT NULL")
    for name, column in (("ix_items_origin", "origin"), ("ix_items_of_gates", "interrupt_id")):
        op.create_index(name, "items", ["tenant_id", column], sqlite_where=only, postgresql_where=only)
    op.add_column("grants", sa.Column("origin", sa.String()))
    op.add_column("grants", sa.Column("taken_by", sa.String()))
    op.add_column("grants", sa.Column("alive_until", Instant()))
    op.create_index("ix_grants_alive_until", "grants", ["alive_until"])
