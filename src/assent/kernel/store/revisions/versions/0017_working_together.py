"""The owner of an item, the people that comments mention, and saved reasons."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("items", sa.Column("owner", sa.String, nullable=True))
    _index("items", ["tenant_id", "owner", "open", "created_at", "item_id"])
    op.create_table(
        "mentions",
        sa.Column("tenant_id", sa.String, nullable=False),
        sa.Column("comment_id", sa.String, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("item_id", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "comment_id", "actor", name=op.f("pk_mentions")),
    )
    _index("mentions", ["tenant_id", "actor", "item_id"])
    _index("mentions", ["tenant_id", "item_id"])
    op.create_table(
        "reasons",
        sa.Column("tenant_id", sa.String, nullable=False),
        sa.Column("reason_id", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("use", sa.String, nullable=False),
        sa.Column("created_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "reason_id", name=op.f("pk_reasons")),
        sa.UniqueConstraint("tenant_id", "name", name=op.f("uq_reasons_tenant_id_name")),
    )


def _index(table: str, columns: list[str]) -> None:
    op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, columns)
