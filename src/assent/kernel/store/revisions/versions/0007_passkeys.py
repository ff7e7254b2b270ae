"""Passkeys, their challenges, and whether a sign-in depends on an API key."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant, Json

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "passkeys",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("passkey_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("credential_id", sa.String(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("party", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("transports", Json, nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("last_used_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name=op.f("fk_passkeys_tenant_id_user_id"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "passkey_id", name=op.f("pk_passkeys")),
        sa.UniqueConstraint("tenant_id", "credential_id", name=op.f("uq_passkeys_tenant_id_credential_id")),
    )
    op.create_index(
        op.f("ix_passkeys_tenant_id_user_id_created_at_passkey_id"),
        "passkeys",
        ["tenant_id", "user_id", "created_at", "passkey_id"],
        unique=False,
    )
    op.create_table(
        "challenges",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("bound", sa.String(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "hash", name=op.f("pk_challenges")),
    )
    op.create_index(op.f("ix_challenges_expires_at"), "challenges", ["expires_at"], unique=False)
    op.create_index(
        op.f("ix_challenges_tenant_id_user_id_subject"), "challenges", ["tenant_id", "user_id", "subject"], unique=False
    )
    # Earlier sign-ins may depend on an API key: they cannot register a passkey.
    for table in ("sessions", "login_links"):
        op.add_column(table, sa.Column("by_key", sa.Boolean(), nullable=False, server_default=sa.true()))
