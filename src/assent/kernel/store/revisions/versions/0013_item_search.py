"""Full-text search over items, the type that people see, and indexes for the orders by deadline and by risk. The server
fills in the texts of existing items in the background, because they need the masks of their secrets."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import NEVER, TEXT_INDEX, Instant, Lexemes

revision = "0013"
down_revision = "0012"

_FILL = (
    "UPDATE items SET kind = type, ends_at = COALESCE(expires_at, :never), risk_rank = "
    "CASE risk WHEN 'low' THEN 1 WHEN 'medium' THEN 2 WHEN 'high' THEN 3 WHEN 'critical' THEN 4 ELSE 0 END"
)


def upgrade() -> None:
    op.add_column("items", sa.Column("kind", sa.String, nullable=False, server_default=""))
    op.add_column("items", sa.Column("risk_rank", sa.Integer, nullable=False, server_default="0"))
    op.add_column("items", sa.Column("ends_at", Instant, nullable=True))
    op.execute(sa.text(_FILL).bindparams(sa.bindparam("never", NEVER, Instant)))
    for columns in (["ends_at"], ["risk_rank", "created_at"]):
        _index("items", ["tenant_id", "open", *columns, "item_id"])
    _create_texts()


def _index(table: str, columns: list[str]) -> None:
    op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, columns)


def _create_texts() -> None:
    op.create_table(
        "item_texts",
        sa.Column("text_id", sa.Integer, nullable=False),
        sa.Column("tenant_id", sa.String, nullable=False),
        sa.Column("item_id", sa.String, nullable=False),
        sa.Column("lexemes", Lexemes, nullable=False),
        sa.PrimaryKeyConstraint("text_id", name=op.f("pk_item_texts")),
        sa.UniqueConstraint("tenant_id", "item_id", name=op.f("uq_item_texts_tenant_id_item_id")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.create_index("ix_item_texts_lexemes", "item_texts", ["lexemes"], postgresql_using="gin")
        return
    for statement in TEXT_INDEX:
        op.execute(statement)
