"""People, keys, sessions, threads, runs and the timeline."""

import sqlalchemy as sa
from alembic import op

from assent.kernel.store.tables import Instant, Json

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "assistant_versions",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("assistant_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("graph_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("config", Json, nullable=False),
        sa.Column("context", Json, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "assistant_id", "version", name="pk_assistant_versions"),
    )
    op.create_table(
        "assistants",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("assistant_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("graph_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("config", Json, nullable=False),
        sa.Column("context", Json, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "assistant_id", name="pk_assistants"),
    )
    op.create_index(
        "ix_assistants_tenant_id_created_at_assistant_id",
        "assistants",
        ["tenant_id", "created_at", "assistant_id"],
        unique=False,
    )
    op.create_table(
        "checkpoint_writes",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("ns", sa.String(), nullable=False),
        sa.Column("checkpoint_id", sa.String(), nullable=False),
        sa.Column("task_id", sa.String(), nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("task_path", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant_id", "thread_id", "ns", "checkpoint_id", "task_id", "idx", name="pk_checkpoint_writes"
        ),
    )
    op.create_table(
        "checkpoints",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("ns", sa.String(), nullable=False),
        sa.Column("checkpoint_id", sa.String(), nullable=False),
        sa.Column("parent_id", sa.String(), nullable=True),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("checkpoint", sa.LargeBinary(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "thread_id", "ns", "checkpoint_id", name="pk_checkpoints"),
    )
    op.create_table(
        "deliveries",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("delivery_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", Instant(), nullable=True),
        sa.Column("attempted_at", Instant(), nullable=True),
        sa.Column("delivered_at", Instant(), nullable=True),
        sa.Column("failure", sa.String(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "delivery_id", name="pk_deliveries"),
    )
    op.create_index("ix_deliveries_attempted_at", "deliveries", ["attempted_at"], unique=False)
    op.create_index("ix_deliveries_due_at", "deliveries", ["due_at"], unique=False)
    op.create_index(
        "ix_deliveries_tenant_id_created_at_delivery_id",
        "deliveries",
        ["tenant_id", "created_at", "delivery_id"],
        unique=False,
    )
    op.create_index(
        "ix_deliveries_tenant_id_status_created_at_delivery_id",
        "deliveries",
        ["tenant_id", "status", "created_at", "delivery_id"],
        unique=False,
    )
    op.create_index(
        "ix_deliveries_tenant_id_subject_created_at_delivery_id",
        "deliveries",
        ["tenant_id", "subject", "created_at", "delivery_id"],
        unique=False,
    )
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
        "frames",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq", name="pk_frames"),
    )
    op.create_table(
        "memories",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("namespace", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", Json, nullable=False),
        sa.Column("ttl_minutes", sa.Float(), nullable=True),
        sa.Column("expires_at", Instant(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "namespace", "key", name="pk_memories"),
    )
    op.create_index("ix_memories_expires_at", "memories", ["expires_at"], unique=False)
    op.create_table(
        "threads",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("graph_id", sa.String(), nullable=True),
        sa.Column("assistant_id", sa.String(), nullable=True),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("config", Json, nullable=False),
        sa.Column("values", Json, nullable=True),
        sa.Column("interrupts", Json, nullable=True),
        sa.Column("error", Json, nullable=True),
        sa.Column("next", Json, nullable=True),
        sa.Column("shown", sa.Boolean(), nullable=False),
        sa.Column("ttl_minutes", sa.Float(), nullable=True),
        sa.Column("ttl_strategy", sa.String(), nullable=True),
        sa.Column("expires_at", Instant(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.Column("state_updated_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "thread_id", name="pk_threads"),
    )
    op.create_index("ix_threads_expires_at", "threads", ["expires_at"], unique=False)
    op.create_index(
        "ix_threads_tenant_id_assistant_id_status_created_at_thread_id",
        "threads",
        ["tenant_id", "assistant_id", "status", "created_at", "thread_id"],
        unique=False,
    )
    op.create_index(
        "ix_threads_tenant_id_created_at_thread_id", "threads", ["tenant_id", "created_at", "thread_id"], unique=False
    )
    op.create_index(
        "ix_threads_tenant_id_graph_id_status_created_at_thread_id",
        "threads",
        ["tenant_id", "graph_id", "status", "created_at", "thread_id"],
        unique=False,
    )
    op.create_index(
        "ix_threads_tenant_id_status_created_at_thread_id",
        "threads",
        ["tenant_id", "status", "created_at", "thread_id"],
        unique=False,
    )
    op.create_index(
        "ix_threads_tenant_id_updated_at_thread_id", "threads", ["tenant_id", "updated_at", "thread_id"], unique=False
    )
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
        "answers",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("interrupt_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("value", Json, nullable=True),
        sa.Column("standing", sa.Boolean(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "thread_id"],
            ["threads.tenant_id", "threads.thread_id"],
            name="fk_answers_tenant_id_thread_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "run_id", "interrupt_id", name="pk_answers"),
    )
    op.create_index(
        "ix_answers_one_standing",
        "answers",
        ["tenant_id", "thread_id", "interrupt_id"],
        unique=True,
        sqlite_where=sa.text("standing"),
        postgresql_where=sa.text("standing"),
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
        "runs",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("assistant_id", sa.String(), nullable=False),
        sa.Column("graph_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("answers", sa.Boolean(), nullable=False),
        sa.Column("wake_at", Instant(), nullable=True),
        sa.Column("cancel", sa.String(), nullable=True),
        sa.Column("temporary", sa.Boolean(), nullable=False),
        sa.Column("multitask_strategy", sa.String(), nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("kwargs", Json, nullable=False),
        sa.Column("error", Json, nullable=True),
        sa.Column("webhook", sa.String(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.Column("started_at", Instant(), nullable=True),
        sa.Column("ended_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "thread_id"],
            ["threads.tenant_id", "threads.thread_id"],
            name="fk_runs_tenant_id_thread_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "run_id", name="pk_runs"),
    )
    op.create_index(
        "ix_runs_active",
        "runs",
        ["tenant_id", "thread_id", "position"],
        unique=False,
        sqlite_where=sa.text("status IN ('pending', 'running')"),
        postgresql_where=sa.text("status IN ('pending', 'running')"),
    )
    op.create_index(
        "ix_runs_one_running",
        "runs",
        ["tenant_id", "thread_id"],
        unique=True,
        sqlite_where=sa.text("status = 'running'"),
        postgresql_where=sa.text("status = 'running'"),
    )
    op.create_index(
        "ix_runs_tenant_id_thread_id_created_at_run_id",
        "runs",
        ["tenant_id", "thread_id", "created_at", "run_id"],
        unique=False,
    )
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
