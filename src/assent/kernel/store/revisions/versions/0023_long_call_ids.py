"""Finds grants by their thread: a call id may be longer than an index of Postgres takes."""

from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.drop_index(op.f("ix_grants_tenant_id_thread_id_call_id_created_at"), "grants")
    op.create_index(
        op.f("ix_grants_tenant_id_thread_id_created_at"), "grants", ["tenant_id", "thread_id", "created_at"]
    )
