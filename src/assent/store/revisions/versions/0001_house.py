"""People, keys, sessions and the timeline: the house."""

import sqlalchemy as sa
from alembic import op

from assent.store.tables import Instant, Json

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "event_heads",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_event_heads"),
    )
    op.create_table(
        "event_payloads",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "seq", name="pk_event_payloads"),
    )
    op.create_table(
        "events",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("payload_hash", sa.String(), nullable=False),
        sa.Column("previous", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "seq", name="pk_events"),
    )
    op.create_index("ix_events_tenant_id_at", "events", ["tenant_id", "at"], unique=False)
    op.create_index("ix_events_tenant_id_subject_seq", "events", ["tenant_id", "subject", "seq"], unique=False)
    op.create_table(
        "users",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("email", sa.String(), nullable=True),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("disabled_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", name="pk_users"),
        sa.UniqueConstraint("tenant_id", "name", name="uq_users_tenant_id_name"),
    )
    op.create_table(
        "api_keys",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("scopes", Json, nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=True),
        sa.Column("revoked_at", Instant(), nullable=True),
        sa.Column("last_used_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], name="fk_api_keys_tenant_id_user_id"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "key_id", name="pk_api_keys"),
        sa.UniqueConstraint("hash", name="uq_api_keys_hash"),
    )
    op.create_index(
        "ix_api_keys_tenant_id_created_at_key_id", "api_keys", ["tenant_id", "created_at", "key_id"], unique=False
    )
    op.create_table(
        "login_links",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], name="fk_login_links_tenant_id_user_id"
        ),
        sa.PrimaryKeyConstraint("hash", name="pk_login_links"),
    )
    op.create_index("ix_login_links_expires_at", "login_links", ["expires_at"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], name="fk_sessions_tenant_id_user_id"
        ),
        sa.PrimaryKeyConstraint("hash", name="pk_sessions"),
    )
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"], unique=False)
