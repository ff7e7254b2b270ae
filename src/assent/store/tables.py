"""One set of tables for SQLite and Postgres. All carry `tenant_id`, and `Tx` refuses statements that forget it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    text,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.types import TypeDecorator, TypeEngine

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """A moment in UTC to the microsecond: `timestamptz` on Postgres, integer microseconds on SQLite."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        native = TIMESTAMP(timezone=True) if dialect.name == "postgresql" else BigInteger()
        return dialect.type_descriptor(native)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.astimezone(UTC) if isinstance(value, datetime) else _EPOCH + value * _MICROSECOND


Json = JSON(none_as_null=True)
"""JSON exactly as it was written, on both. Postgres' `jsonb` would make 1e23 an integer and refuse a NUL in a text."""

TENANT = bindparam("tenant", type_=String())
"""Stands for the transaction's tenant in every statement; `Tx` fills it in."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

users = Table(
    "users",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("user_id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("email", String),
    Column("role", String, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("disabled_at", Instant),
    UniqueConstraint("tenant_id", "name"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("key_id", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("name", String, nullable=False),
    Column("user_id", String),
    Column("hash", String, nullable=False, unique=True),
    Column("scopes", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Column("revoked_at", Instant),
    Column("last_used_at", Instant),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"]),
    Index(None, "tenant_id", "created_at", "key_id"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("tenant_id", String, nullable=False),
    Column("hash", String, primary_key=True),
    Column("user_id", String, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False, index=True),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"]),
)

login_links = Table(
    "login_links",
    metadata,
    Column("tenant_id", String, nullable=False),
    Column("hash", String, primary_key=True),
    Column("user_id", String, nullable=False),
    Column("expires_at", Instant, nullable=False, index=True),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"]),
)

events = Table(
    "events",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False),
    Column("kind", String, nullable=False),
    Column("actor", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("payload_hash", String, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
    Index(None, "tenant_id", "subject", "seq"),
    Index(None, "tenant_id", "at"),
)

event_payloads = Table(
    "event_payloads",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("payload", Text, nullable=False),
)

event_heads = Table(
    "event_heads",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String, nullable=False),
)

assistants = Table(
    "assistants",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("assistant_id", String, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("graph_id", String, nullable=False),
    Column("name", String, nullable=False),
    Column("description", String),
    Column("config", Json, nullable=False),
    Column("context", Json, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Index(None, "tenant_id", "created_at", "assistant_id"),
)

assistant_versions = Table(
    "assistant_versions",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("assistant_id", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("graph_id", String, nullable=False),
    Column("name", String, nullable=False),
    Column("description", String),
    Column("config", Json, nullable=False),
    Column("context", Json, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
)

threads = Table(
    "threads",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("thread_id", String, primary_key=True),
    Column("status", String, nullable=False),
    Column("graph_id", String),  # as in metadata, where the clients look for it; here for the index
    Column("assistant_id", String),
    Column("metadata", Json, nullable=False),
    Column("config", Json, nullable=False),
    Column("values", Json),
    Column("interrupts", Json),
    Column("error", Json),
    Column("next", Json),
    Column("shown", Boolean, nullable=False, default=False),
    Column("ttl_minutes", Float),
    Column("ttl_strategy", String),
    Column("expires_at", Instant, index=True),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("state_updated_at", Instant),
    Index(None, "tenant_id", "created_at", "thread_id"),
    Index(None, "tenant_id", "updated_at", "thread_id"),
    Index(None, "tenant_id", "status", "created_at", "thread_id"),
    Index(None, "tenant_id", "graph_id", "status", "created_at", "thread_id"),
    Index(None, "tenant_id", "assistant_id", "status", "created_at", "thread_id"),
)

runs = Table(
    "runs",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("run_id", String, primary_key=True),
    Column("thread_id", String, nullable=False),
    Column("assistant_id", String, nullable=False),
    Column("graph_id", String, nullable=False),
    Column("status", String, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False, default=0),
    Column("answers", Boolean, nullable=False),  # carries a resume: may start while the thread waits
    Column("wake_at", Instant),  # delayed: takes no part in its thread's order before this
    Column("cancel", String),  # interrupt or rollback, once asked for
    Column("temporary", Boolean, nullable=False),
    Column("multitask_strategy", String, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("kwargs", Json, nullable=False),
    Column("error", Json),
    Column("webhook", String),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("ended_at", Instant),
    ForeignKeyConstraint(["tenant_id", "thread_id"], ["threads.tenant_id", "threads.thread_id"], ondelete="CASCADE"),
    Index(None, "tenant_id", "thread_id", "created_at", "run_id"),
    Index(
        "ix_runs_active",
        "tenant_id",
        "thread_id",
        "position",
        sqlite_where=text("status IN ('pending', 'running')"),
        postgresql_where=text("status IN ('pending', 'running')"),
    ),
    Index(
        "ix_runs_one_running",
        "tenant_id",
        "thread_id",
        unique=True,
        sqlite_where=text("status = 'running'"),
        postgresql_where=text("status = 'running'"),
    ),
)

answers = Table(
    "answers",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("run_id", String, primary_key=True),
    Column("interrupt_id", String, primary_key=True),
    Column("thread_id", String, nullable=False),
    Column("actor", String, nullable=False),
    Column("value", Json),
    Column("standing", Boolean, nullable=False),  # false once its run ended with the question still open
    Column("created_at", Instant, nullable=False),
    ForeignKeyConstraint(["tenant_id", "thread_id"], ["threads.tenant_id", "threads.thread_id"], ondelete="CASCADE"),
    Index(
        "ix_answers_one_standing",
        "tenant_id",
        "thread_id",
        "interrupt_id",
        unique=True,
        sqlite_where=text("standing"),
        postgresql_where=text("standing"),
    ),
)

frames = Table(
    "frames",
    metadata,
    Column("tenant_id", String, nullable=False),
    Column("thread_id", String, nullable=False),
    Column("run_id", String, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("id", String, nullable=False),
    Column("event", String, nullable=False),
    Column("data", Text, nullable=False),
    Column("at", Instant, nullable=False),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("delivery_id", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("target", String, nullable=False),
    Column("body", Text, nullable=False),  # empty once it has arrived
    Column("status", String, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Instant, index=True),  # when to try, or whose turn it is then; null once it is settled
    Column("attempted_at", Instant, index=True),
    Column("delivered_at", Instant),
    Column("failure", String),
    Column("created_at", Instant, nullable=False),
    Index(None, "tenant_id", "created_at", "delivery_id"),
    Index(None, "tenant_id", "status", "created_at", "delivery_id"),
    Index(None, "tenant_id", "subject", "created_at", "delivery_id"),
)

memories = Table(
    "memories",
    metadata,
    Column("tenant_id", String, primary_key=True),
    # A dot after every label, compared byte by byte: what lies below a namespace is one range of the key.
    Column("namespace", String().with_variant(String(collation="C"), "postgresql"), primary_key=True),
    Column("key", String, primary_key=True),
    Column("value", Json, nullable=False),
    Column("ttl_minutes", Float),
    Column("expires_at", Instant, index=True),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("thread_id", String, primary_key=True),
    Column("ns", String, primary_key=True),
    Column("checkpoint_id", String, primary_key=True),
    Column("parent_id", String),
    Column("run_id", String),
    Column("type", String, nullable=False),
    Column("checkpoint", LargeBinary, nullable=False),
    Column("metadata", Text, nullable=False),
)

checkpoint_writes = Table(
    "checkpoint_writes",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("thread_id", String, primary_key=True),
    Column("ns", String, primary_key=True),
    Column("checkpoint_id", String, primary_key=True),
    Column("task_id", String, primary_key=True),
    Column("idx", Integer, primary_key=True),
    Column("run_id", String),
    Column("task_path", String, nullable=False),
    Column("channel", String, nullable=False),
    Column("type", String, nullable=False),
    Column("value", LargeBinary, nullable=False),
)
