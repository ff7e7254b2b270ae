"""Items, decisions, grants and policies: the inbox and the gate."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant, Json

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "comments",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("comment_id", sa.String(), nullable=False),
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "comment_id", name=op.f("pk_comments")),
    )
    op.create_index(
        op.f("ix_comments_tenant_id_item_id_at_comment_id"),
        "comments",
        ["tenant_id", "item_id", "at", "comment_id"],
        unique=False,
    )
    op.create_table(
        "decisions",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("decision_id", sa.String(), nullable=False),
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("verdicts", Json, nullable=False),
        sa.Column("notes", sa.String(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("via", sa.String(), nullable=False),
        sa.Column("standing", sa.Boolean(), nullable=False),
        sa.Column("closes", sa.Boolean(), nullable=False),
        sa.Column("delivery_id", sa.String(), nullable=True),
        sa.Column("at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "decision_id", name=op.f("pk_decisions")),
    )
    op.create_index(
        "ix_decisions_one_closing",
        "decisions",
        ["tenant_id", "item_id"],
        unique=True,
        sqlite_where=sa.text("closes AND standing"),
        postgresql_where=sa.text("closes AND standing"),
    )
    op.create_index(
        op.f("ix_decisions_tenant_id_item_id_at_decision_id"),
        "decisions",
        ["tenant_id", "item_id", "at", "decision_id"],
        unique=False,
    )
    op.create_table(
        "grants",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("grant_id", sa.String(), nullable=False),
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("decision_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("call_id", sa.String(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("not_before", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.Column("task", sa.String(), nullable=True),
        sa.Column("doubt_id", sa.String(), nullable=True),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("result", Json, nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("started_at", Instant(), nullable=True),
        sa.Column("ended_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "grant_id", name=op.f("pk_grants")),
    )
    op.create_index(op.f("ix_grants_tenant_id_item_id"), "grants", ["tenant_id", "item_id"], unique=False)
    op.create_index(
        op.f("ix_grants_tenant_id_thread_id_call_id_created_at"),
        "grants",
        ["tenant_id", "thread_id", "call_id", "created_at"],
        unique=False,
    )
    op.create_table(
        "item_links",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "item_id", "thread_id", name=op.f("pk_item_links")),
    )
    op.create_table(
        "item_marks",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("draft", Json, nullable=True),
        sa.Column("snoozed_until", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "item_id", "actor", name=op.f("pk_item_marks")),
    )
    op.create_table(
        "item_revisions",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("asked", Json, nullable=False),
        sa.Column("response_schema", Json, nullable=True),
        sa.Column("calls", Json, nullable=False),
        sa.Column("edits", Json, nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("notes", sa.String(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "item_id", "number", name=op.f("pk_item_revisions")),
    )
    op.create_table(
        "items",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("resolution", sa.String(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("dialect", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("summary", sa.String(), nullable=False),
        sa.Column("gated", sa.Boolean(), nullable=False),
        sa.Column("risk", sa.String(), nullable=True),
        sa.Column("policy", Json, nullable=False),
        sa.Column("execution", sa.String(), nullable=True),
        sa.Column("deployment", sa.String(), nullable=False),
        sa.Column("graph_id", sa.String(), nullable=True),
        sa.Column("assistant_id", sa.String(), nullable=True),
        sa.Column("thread_id", sa.String(), nullable=True),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("interrupt_id", sa.String(), nullable=True),
        sa.Column("doubt_id", sa.String(), nullable=True),
        sa.Column("requester", sa.String(), nullable=False),
        sa.Column("recipient", sa.String(), nullable=True),
        sa.Column("entity_type", sa.String(), nullable=True),
        sa.Column("entity_id", sa.String(), nullable=True),
        sa.Column("dedupe_key", sa.String(), nullable=True),
        sa.Column("callback", sa.String(), nullable=True),
        sa.Column("follows", sa.String(), nullable=True),
        sa.Column("approvals", sa.Integer(), nullable=False),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.Column("claimed_until", Instant(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.Column("decided_at", Instant(), nullable=True),
        sa.Column("decided_by", sa.String(), nullable=True),
        sa.Column("undo_until", Instant(), nullable=True),
        sa.Column("expires_at", Instant(), nullable=True),
        sa.Column("due_at", Instant(), nullable=True),
        sa.Column("due", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "item_id", name=op.f("pk_items")),
    )
    op.create_index(
        "ix_items_dedupe",
        "items",
        ["tenant_id", "requester", "dedupe_key"],
        unique=True,
        sqlite_where=sa.text("dedupe_key IS NOT NULL"),
        postgresql_where=sa.text("dedupe_key IS NOT NULL"),
    )
    op.create_index(op.f("ix_items_due_at"), "items", ["due_at"], unique=False)
    op.create_index(
        "ix_items_one_open",
        "items",
        ["tenant_id", "deployment", "thread_id", "interrupt_id"],
        unique=True,
        sqlite_where=sa.text("open AND interrupt_id IS NOT NULL"),
        postgresql_where=sa.text("open AND interrupt_id IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_items_tenant_id_created_at_item_id"), "items", ["tenant_id", "created_at", "item_id"], unique=False
    )
    op.create_index(
        op.f("ix_items_tenant_id_execution_created_at_item_id"),
        "items",
        ["tenant_id", "execution", "created_at", "item_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_items_tenant_id_open_created_at_item_id"),
        "items",
        ["tenant_id", "open", "created_at", "item_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_items_tenant_id_status_created_at_item_id"),
        "items",
        ["tenant_id", "status", "created_at", "item_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_items_tenant_id_thread_id_interrupt_id_created_at"),
        "items",
        ["tenant_id", "thread_id", "interrupt_id", "created_at"],
        unique=False,
    )
    op.create_index(
        op.f("ix_items_tenant_id_type_open_created_at_item_id"),
        "items",
        ["tenant_id", "type", "open", "created_at", "item_id"],
        unique=False,
    )
    op.create_table(
        "policies",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("policy", Json, nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "version", name=op.f("pk_policies")),
    )
    op.create_table(
        "requests",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("body_hash", sa.String(), nullable=False),
        sa.Column("answer", Json, nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "actor", "key", name=op.f("pk_requests")),
    )
    op.create_index(op.f("ix_requests_at"), "requests", ["at"], unique=False)
    op.create_table(
        "standing_approvals",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("approval_id", sa.String(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("graph", sa.String(), nullable=True),
        sa.Column("condition", sa.String(), nullable=True),
        sa.Column("args_hash", sa.String(), nullable=True),
        sa.Column("item_id", sa.String(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.Column("uses_left", sa.Integer(), nullable=True),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("revoked_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "approval_id", name=op.f("pk_standing_approvals")),
    )
    op.create_index(
        op.f("ix_standing_approvals_tenant_id_created_at_approval_id"),
        "standing_approvals",
        ["tenant_id", "created_at", "approval_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_standing_approvals_tenant_id_tool_created_at"),
        "standing_approvals",
        ["tenant_id", "tool", "created_at"],
        unique=False,
    )
    op.add_column("runs", sa.Column("actor", sa.String(), server_default="system", nullable=False))
    op.add_column("users", sa.Column("groups", Json, server_default="[]", nullable=False))
