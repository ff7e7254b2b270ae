"""Vectors of store items, by which they are found. Existing items get theirs when they are stored again."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.vectors import VectorType

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "memory_vectors",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("namespace", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("vector", VectorType(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "namespace", "key"],
            ["memories.tenant_id", "memories.namespace", "memories.key"],
            name=op.f("fk_memory_vectors_tenant_id_namespace_key"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "namespace", "key", "path", name=op.f("pk_memory_vectors")),
    )
