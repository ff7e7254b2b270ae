"""Logins at MCP servers, and the sign-ins that wait for a person: shared by all processes."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant, Json

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.create_table(
        "mcp_logins",
        sa.Column("tenant_id", sa.String, nullable=False),
        sa.Column("server", sa.String, nullable=False),
        sa.Column("login", sa.LargeBinary),
        sa.Column("sign_in", sa.String),
        sa.Column("state", sa.String),
        sa.Column("page", sa.LargeBinary),
        sa.Column("people", Json),
        sa.Column("answer", sa.LargeBinary),
        sa.Column("done", sa.Boolean),
        sa.Column("until", Instant()),
        sa.PrimaryKeyConstraint("tenant_id", "server", name=op.f("pk_mcp_logins")),
    )
