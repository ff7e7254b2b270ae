"""One set of tables for SQLite and Postgres. All carry `tenant_id`, and `Tx` refuses statements that forget it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Dialect,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
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


Json = JSON().with_variant(JSONB(), "postgresql")

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
