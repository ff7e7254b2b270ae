"""One set of tables for SQLite and Postgres. All have a `tenant_id`, and `Tx` refuses statements that omit it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    DDL,
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
    event,
    false,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP, TSVECTOR
from sqlalchemy.types import TypeDecorator, TypeEngine

from assent.kernel import jsontext
from assent.kernel.store.vectors import VectorType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""Comes after every deadline."""
_MICROSECOND = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """A UTC time with microseconds: `timestamptz` on Postgres, integer microseconds on SQLite."""

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


class JsonText(TypeDecorator[Any]):
    """A JSON column. SQLite's driver runs in its own threads; values from Postgres are parsed here, large ones in a
    thread outside the event loop."""

    impl = JSON
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return jsontext.load_beside_loop(value) if isinstance(value, bytes) else value


Json = JsonText(none_as_null=True)


class Lexemes(TypeDecorator[Any]):
    """The words of a text, in order, for the full-text index: a `tsvector` on Postgres, words with spaces between them
    on SQLite. A word contains neither spaces nor quotes."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(TSVECTOR() if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        if dialect.name != "postgresql":
            return " ".join(value)
        return " ".join(f"'{word}':{place}" for place, word in enumerate(value, start=1))


"""JSON exactly as it was written, on both. Postgres' `jsonb` would make 1e23 an integer and refuse a NUL in a text."""

TENANT = bindparam("tenant", type_=String())
"""The transaction's tenant in every statement; bound by `Tx`."""

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
    Column("groups", Json, nullable=False, server_default="[]"),
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
    Column("principal_id", String),
    Column("hash", String, nullable=False, unique=True),
    Column("scopes", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Column("revoked_at", Instant),
    Column("last_used_at", Instant),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"]),
    Index(None, "tenant_id", "created_at", "key_id"),
)

agents = Table(  # every agent: those with keys, and those that were registered without one
    "agents",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("agent_id", String, primary_key=True),  # the id of its principal
    Column("name", String, nullable=False),
    Column("parent_id", String),  # another agent, which may be gone
    Column("human_id", String),  # the person who reviews its work
    Column("source", String, nullable=False, server_default="user"),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Index(None, "tenant_id", "name", "agent_id"),
    Index(None, "tenant_id", "parent_id"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("tenant_id", String, nullable=False),
    Column("hash", String, primary_key=True),
    Column("user_id", String, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False, index=True),
    Column("by_key", Boolean, nullable=False, server_default=true()),  # depends on an API key
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"]),
)

login_links = Table(
    "login_links",
    metadata,
    Column("tenant_id", String, nullable=False),
    Column("hash", String, primary_key=True),
    Column("user_id", String, nullable=False),
    Column("expires_at", Instant, nullable=False, index=True),
    Column("by_key", Boolean, nullable=False, server_default=true()),  # depends on an API key
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"]),
)

passkeys = Table(
    "passkeys",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("passkey_id", String, primary_key=True),
    Column("user_id", String, nullable=False),
    Column("credential_id", String, nullable=False),  # base64url, as browsers send it
    Column("public_key", LargeBinary, nullable=False),
    Column("sign_count", BigInteger, nullable=False),
    Column("party", String, nullable=False),  # the domain that the browser has bound it to
    Column("name", String, nullable=False),
    Column("transports", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("last_used_at", Instant),
    UniqueConstraint("tenant_id", "credential_id"),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"]),
    Index(None, "tenant_id", "user_id", "created_at", "passkey_id"),
)

challenges = Table(  # challenges for passkeys; each is used once
    "challenges",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("hash", String, primary_key=True),
    Column("user_id", String, nullable=False),
    Column("subject", String, nullable=False),  # the item or the session; a person has one challenge for each
    Column("bound", String, nullable=False),  # the digest of the signature's purpose
    Column("expires_at", Instant, nullable=False, index=True),
    Index(None, "tenant_id", "user_id", "subject"),
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

audit_anchors = Table(  # the last signed head of each tenant
    "audit_anchors",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String, nullable=False),
    Column("at", Instant, nullable=False),
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
    Column("owner", String),  # the actor that created it; null for the graphs' own, and where unknown
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
    Column("graph_id", String),  # as in metadata, where clients search for it; here for the index
    Column("assistant_id", String),
    Column("metadata", Json, nullable=False),
    Column("config", Json, nullable=False),
    Column("values", Json),
    Column("interrupts", Json),
    Column("error", Json),
    Column("next", Json),
    Column("shown", Boolean, nullable=False, default=False),
    Column("owner", String),  # the actor that created it; null where unknown
    Column("visibility", String, nullable=False, server_default="shared"),
    Column("turn_ended_at", Instant),  # when a run last ended without a question
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

thread_values = Table(  # the values of a thread in pieces of their text, where they are large
    "thread_values",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("thread_id", String, primary_key=True),
    Column("n", Integer, primary_key=True),
    Column("text", Text, nullable=False),
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
    Column("lost", Integer, nullable=False, server_default="0"),  # attempts that ended with their process
    # The actor that started it; for a run that continues after an answer, the actor of the first run.
    Column("actor", String, nullable=False, server_default="system"),
    Column("answers", Boolean, nullable=False),  # has a resume value: may start while the thread waits
    Column("passes", String),  # the position of the thread when a decision let this run pass its breakpoint
    Column("wake_at", Instant),  # delayed: not in its thread's order before this
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

contributors = Table(  # people who shaped a thread by more than a bare approval, and the last time
    "contributors",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("thread_id", String, primary_key=True),
    Column("actor", String, primary_key=True),
    Column("at", Instant, nullable=False),
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
    Column("body", Text, nullable=False),  # empty once it was delivered
    Column("status", String, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Instant, index=True),  # the next attempt, or the end of the lease; null once it is settled
    Column("attempted_at", Instant, index=True),
    Column("delivered_at", Instant),
    Column("failure", String),
    Column("created_at", Instant, nullable=False),
    Index(None, "tenant_id", "created_at", "delivery_id"),
    Index(None, "tenant_id", "status", "created_at", "delivery_id"),
    Index(None, "tenant_id", "subject", "created_at", "delivery_id"),
)

items = Table(
    "items",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("item_id", String, primary_key=True),
    Column("status", String, nullable=False),
    Column("open", Boolean, nullable=False),  # derived from the status, for the indexes
    Column("resolution", String),
    Column("revision", Integer, nullable=False),
    Column("hash", String, nullable=False),
    Column("type", String, nullable=False),
    Column("dialect", String, nullable=False),
    Column("kind", String, nullable=False, server_default=""),  # its type as people see it, such as a payment
    Column("title", String, nullable=False),
    Column("summary", String, nullable=False),
    Column("called", String, nullable=False, server_default=""),  # the names of its calls, if a template gave the title
    Column("gated", Boolean, nullable=False),
    Column("risk", String),
    Column("risk_rank", Integer, nullable=False, server_default="0"),  # derived from the risk, for the indexes
    Column("policy", Json, nullable=False),  # the rule in force when it was asked
    Column("secrets", Json),  # the texts that are secret in all of its revisions; null in rows from before this column
    Column("execution", String),
    Column("deployment", String, nullable=False),
    Column("graph_id", String),
    Column("assistant_id", String),
    Column("thread_id", String),
    Column("run_id", String),
    Column("interrupt_id", String),
    Column("reworded", Boolean, nullable=False, server_default=false()),  # the agent asks something else under its id
    Column("doubt_id", String),  # the interrupt in which the gate asks how an interrupted call ended
    Column("requester", String, nullable=False),
    Column("recipient", String),
    Column("entity_type", String),
    Column("entity_id", String),
    Column("workspace_run_id", String),  # the run whose work it reviews; a run has one such item
    Column("routing", Json),  # why a workspace review has its recipient
    Column("dedupe_key", String),
    Column("origin", String),  # the agent, deployment and thread of a gate elsewhere
    Column("callback", String),
    Column("follows", String),  # the item before this one
    Column("approvals", Integer, nullable=False),  # the number of approvals of the current revision
    Column("owner", String),  # the person who takes care of it
    Column("claimed_by", String),
    Column("claimed_until", Instant),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("decided_at", Instant),
    Column("decided_by", String),
    Column("undo_until", Instant),
    Column("expires_at", Instant),
    Column("ends_at", Instant),  # derived from expires_at, never null in a row, for the indexes
    Column("of_thread", String, nullable=False, server_default=""),  # derived from thread_id, for the indexes
    Column("sample", Boolean, nullable=False, server_default=false()),  # sample data of a demonstration
    Column("due_at", Instant, index=True),  # the next deadline
    Column("due", String),
    Index("ix_items_sample", "tenant_id", "created_at", sqlite_where=text("sample"), postgresql_where=text("sample")),
    Index(None, "tenant_id", "open", "created_at", "item_id"),
    Index(None, "tenant_id", "open", "ends_at", "item_id"),
    Index(None, "tenant_id", "open", "risk_rank", "created_at", "item_id"),
    Index(None, "tenant_id", "open", "requester", "created_at", "item_id"),
    Index(None, "tenant_id", "open", "requester", "ends_at", "item_id"),
    Index(None, "tenant_id", "open", "requester", "risk_rank", "created_at", "item_id"),
    Index(None, "tenant_id", "open", "kind", "created_at", "item_id"),
    Index(None, "tenant_id", "open", "kind", "ends_at", "item_id"),
    Index(None, "tenant_id", "open", "kind", "risk_rank", "created_at", "item_id"),
    Index(None, "tenant_id", "open", "of_thread", "created_at", "item_id"),
    Index(None, "tenant_id", "created_at", "item_id"),
    Index(None, "tenant_id", "status", "created_at", "item_id"),
    Index(None, "tenant_id", "type", "open", "created_at", "item_id"),
    Index(None, "tenant_id", "graph_id", "open", "created_at", "item_id"),
    Index(None, "tenant_id", "assistant_id", "open", "created_at", "item_id"),
    Index(None, "tenant_id", "owner", "open", "created_at", "item_id"),
    Index(None, "tenant_id", "execution", "created_at", "item_id"),
    Index(None, "tenant_id", "execution", "open", "created_at", "item_id"),
    Index(None, "tenant_id", "thread_id", "interrupt_id", "created_at"),
    Index(
        "ix_items_one_open",
        "tenant_id",
        "deployment",
        "thread_id",
        "interrupt_id",
        unique=True,
        sqlite_where=text("open AND interrupt_id IS NOT NULL"),
        postgresql_where=text("open AND interrupt_id IS NOT NULL"),
    ),
    Index(
        "ix_items_origin",
        "tenant_id",
        "origin",
        sqlite_where=text("origin IS NOT NULL"),
        postgresql_where=text("origin IS NOT NULL"),
    ),
    Index(
        "ix_items_of_gates",
        "tenant_id",
        "deployment",
        sqlite_where=text("open AND origin IS NOT NULL"),
        postgresql_where=text("open AND origin IS NOT NULL"),
    ),
    Index(
        "ix_items_one_workspace_review",
        "tenant_id",
        "workspace_run_id",
        unique=True,
        sqlite_where=text("workspace_run_id IS NOT NULL"),
        postgresql_where=text("workspace_run_id IS NOT NULL"),
    ),
    Index(
        "ix_items_routed",
        "tenant_id",
        "recipient",
        sqlite_where=text("routing IS NOT NULL"),
        postgresql_where=text("routing IS NOT NULL"),
    ),
    Index(
        "ix_items_dedupe",
        "tenant_id",
        "requester",
        "dedupe_key",
        unique=True,
        sqlite_where=text("dedupe_key IS NOT NULL"),
        postgresql_where=text("dedupe_key IS NOT NULL"),
    ),
)

item_revisions = Table(
    "item_revisions",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("item_id", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("hash", String, nullable=False),
    Column("asked", JsonText, nullable=False),  # the interrupt's value, which may be null, or the request, unchanged
    Column("response_schema", Json),
    Column("calls", Json, nullable=False),  # the agent's ids of the actions, by key, where the value holds none
    Column("edits", Json, nullable=False),  # a reviewer's edits, by key
    Column("author", String, nullable=False),
    Column("notes", String),
    Column("created_at", Instant, nullable=False),
)

decisions = Table(
    "decisions",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("decision_id", String, primary_key=True),
    Column("item_id", String, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("hash", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("verdicts", Json, nullable=False),
    Column("notes", String),
    Column("actor", String, nullable=False),
    Column("via", String, nullable=False),
    Column("standing", Boolean, nullable=False),  # false once it was withdrawn or a newer revision dismissed it
    Column("closes", Boolean, nullable=False),
    Column("delivery_id", String),
    Column("at", Instant, nullable=False),
    Index(None, "tenant_id", "item_id", "at", "decision_id"),
    Index(
        "ix_decisions_one_closing",
        "tenant_id",
        "item_id",
        unique=True,
        sqlite_where=text("closes AND standing"),
        postgresql_where=text("closes AND standing"),
    ),
)

grants = Table(
    "grants",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("grant_id", String, primary_key=True),
    Column("item_id", String, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("decision_id", String, nullable=False),
    Column("thread_id", String, nullable=False),
    Column("call_id", String, nullable=False),
    Column("tool", String, nullable=False),
    Column("hash", String, nullable=False),
    Column("status", String, nullable=False),
    Column("not_before", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("task", String),  # the task of the graph that used it: the same one finds the result
    Column("doubt_id", String),  # the interrupt in which the gate asks how the call has ended
    Column("run_id", String),
    Column("attempt", Integer),
    Column("result", Json),
    Column("created_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("ended_at", Instant),
    Column("origin", String),  # the process elsewhere that may use it
    Column("taken_by", String),  # the attempt of that process
    Column("alive_until", Instant, index=True),  # without a heartbeat until then, the call is in doubt
    Index(None, "tenant_id", "thread_id", "created_at"),  # a call id may be longer than an index takes
    Index(None, "tenant_id", "item_id"),
)

comments = Table(
    "comments",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("comment_id", String, primary_key=True),
    Column("item_id", String, nullable=False),
    Column("actor", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Instant, nullable=False),
    Index(None, "tenant_id", "item_id", "at", "comment_id"),
)

mentions = Table(  # the people that a comment names with an @
    "mentions",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("comment_id", String, primary_key=True),
    Column("actor", String, primary_key=True),
    Column("item_id", String, nullable=False),
    Index(None, "tenant_id", "actor", "item_id"),
    Index(None, "tenant_id", "item_id"),
)

reasons = Table(  # saved texts for rejections and requests for a revision
    "reasons",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("reason_id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("use", String, nullable=False),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("tenant_id", "name"),
)

item_texts = Table(  # the words by which people find an item, without secrets and without names of people
    "item_texts",
    metadata,
    Column("text_id", Integer, primary_key=True),
    Column("tenant_id", String, nullable=False),
    Column("item_id", String, nullable=False),
    Column("lexemes", Lexemes, nullable=False),
    UniqueConstraint("tenant_id", "item_id"),
    Index("ix_item_texts_lexemes", "lexemes", postgresql_using="gin").ddl_if(dialect="postgresql"),
)
TEXT_INDEX = (
    "CREATE VIRTUAL TABLE item_texts_index USING fts5"
    " (lexemes, content='item_texts', content_rowid='text_id', tokenize='ascii', prefix='1 2 3', columnsize=0)",
    "CREATE TRIGGER item_texts_inserted AFTER INSERT ON item_texts BEGIN"
    " INSERT INTO item_texts_index (rowid, lexemes) VALUES (new.text_id, new.lexemes); END",
    "CREATE TRIGGER item_texts_deleted AFTER DELETE ON item_texts BEGIN INSERT INTO item_texts_index"
    " (item_texts_index, rowid, lexemes) VALUES ('delete', old.text_id, old.lexemes); END",
    "CREATE TRIGGER item_texts_updated AFTER UPDATE ON item_texts BEGIN INSERT INTO item_texts_index"
    " (item_texts_index, rowid, lexemes) VALUES ('delete', old.text_id, old.lexemes);"
    " INSERT INTO item_texts_index (rowid, lexemes) VALUES (new.text_id, new.lexemes); END",
)
"""The full-text index of SQLite. Triggers maintain it, so that one set of statements writes both databases."""
for statement in TEXT_INDEX:
    event.listen(item_texts, "after_create", DDL(statement).execute_if(dialect="sqlite"))  # type: ignore[no-untyped-call]

item_links = Table(
    "item_links",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("item_id", String, primary_key=True),
    Column("thread_id", String, primary_key=True),
    Column("created_at", Instant, nullable=False),
)

item_marks = Table(  # one person's own marks on an item
    "item_marks",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("item_id", String, primary_key=True),
    Column("actor", String, primary_key=True),
    Column("draft", Json),
    Column("snoozed_until", Instant),
    Column("shown_revision", Integer),  # the last one that the assistant's routes have shown them
)

inboxes = Table(  # saved views, per person
    "inboxes",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("inbox_id", String, primary_key=True),
    Column("owner", String, nullable=False),
    Column("name", String, nullable=False),
    Column("filter", String, nullable=False),
    Column("graph_id", String),  # a graph's name or an assistant's id; null where it is a search
    Column("url", String),
    Column("position", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("tenant_id", "owner", "position"),
)

deployments = Table(  # other servers that run graphs, whose questions are listed here
    "deployments",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("deployment_id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("url", String, nullable=False),
    Column("credentials", LargeBinary),  # the key and the headers, encrypted
    Column("graphs", Json, nullable=False),
    Column("stringify_args", Boolean, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("in_file", Boolean, nullable=False),  # the operator's settings name it
    Column("info", Json),  # as the server described itself
    Column("problem", String),
    Column("message", String),
    Column("failing_since", Instant),
    Column("synced_at", Instant),
    Column("leader", String),  # the process that follows it
    Column("leader_until", Instant),
    Column("webhook_hash", String),  # of the secret with which it announces changes
    Column("called_at", Instant),  # when it last did
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    UniqueConstraint("tenant_id", "name"),
    Index("ix_deployments_webhook_hash", "webhook_hash", unique=True),
)

remote_threads = Table(  # threads of deployments, as they were last seen
    "remote_threads",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("deployment_id", String, primary_key=True),
    Column("thread_id", String, primary_key=True),
    Column("key", String, nullable=False),  # its id here: thread_id of its items
    Column("graph_id", String),
    Column("assistant_id", String),
    Column("version", String, nullable=False),
    Column("waits", Boolean, nullable=False),
    Column("settled", Boolean, nullable=False),  # false: look again, although the thread has not changed
    Column("seen_at", Instant, nullable=False),
    Column("turn", String),  # the delivery whose answer is sent now
    Column("turn_until", Instant),  # the end of its lease
    UniqueConstraint("tenant_id", "key"),
    ForeignKeyConstraint(
        ["tenant_id", "deployment_id"], ["deployments.tenant_id", "deployments.deployment_id"], ondelete="CASCADE"
    ),
)

mcp_logins = Table(  # of the assistant at MCP servers, and the sign-ins that wait for a person
    "mcp_logins",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("server", String, primary_key=True),  # the hash of its address
    Column("login", LargeBinary),  # the tokens, encrypted
    Column("sign_in", String),  # the id of the sign-in
    Column("state", String),  # the hash of the secret that the authorization server sends back
    Column("page", LargeBinary),  # the page of the authorization server, encrypted
    Column("people", Json),  # who opened it
    Column("answer", LargeBinary),  # the code that the person came back with, encrypted
    Column("done", Boolean),  # how it ended
    Column("until", Instant),  # the end of the lease of the process that waits
)

policies = Table(
    "policies",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("policy", Json, nullable=False),
    Column("hash", String, nullable=False),
    Column("source", String, nullable=False),
    Column("actor", String, nullable=False),
    Column("created_at", Instant, nullable=False),
)

standing_approvals = Table(
    "standing_approvals",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("approval_id", String, primary_key=True),
    Column("tool", String, nullable=False),
    Column("graph", String),
    Column("agent", String),  # the id of the only agent; null for every agent
    Column("condition", String),
    Column("args_hash", String),
    Column("item_id", String),  # the decision it came from
    Column("actor", String, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("uses_left", Integer),
    Column("uses", Integer, nullable=False),
    Column("revoked_at", Instant),
    Index(None, "tenant_id", "tool", "created_at"),
    Index(None, "tenant_id", "created_at", "approval_id"),
)

requests = Table(  # answers by Idempotency-Key
    "requests",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("actor", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("body_hash", String, nullable=False),
    Column("answer", Json, nullable=False),
    Column("at", Instant, nullable=False, index=True),
)

memories = Table(
    "memories",
    metadata,
    Column("tenant_id", String, primary_key=True),
    # A dot after every label, compared byte by byte: everything below a namespace is one range of the key.
    Column("namespace", String().with_variant(String(collation="C"), "postgresql"), primary_key=True),
    Column("key", String, primary_key=True),
    Column("value", Json, nullable=False),
    Column("owner", String),
    Column("visibility", String, nullable=False, server_default="shared"),
    Column("ttl_minutes", Float),
    Column("expires_at", Instant, index=True),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
)

memory_vectors = Table(  # the texts of a memory by which it is found
    "memory_vectors",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("namespace", String().with_variant(String(collation="C"), "postgresql"), primary_key=True),
    Column("key", String, primary_key=True),
    Column("path", String, primary_key=True),
    Column("model", String, nullable=False),  # vectors of different models cannot be compared
    Column("vector", VectorType, nullable=False),
    ForeignKeyConstraint(
        ["tenant_id", "namespace", "key"],
        ["memories.tenant_id", "memories.namespace", "memories.key"],
        ondelete="CASCADE",
    ),
)

crons = Table(
    "crons",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("cron_id", String, primary_key=True),
    Column("assistant_id", String, nullable=False),
    Column("thread_id", String),
    Column("owner", String, nullable=False),
    Column("visibility", String, nullable=False),
    Column("mandate", Json, nullable=False),
    Column("schedule", String, nullable=False),
    Column("timezone", String),
    Column("end_time", Instant),
    Column("enabled", Boolean, nullable=False),
    Column("on_run_completed", String),
    Column("payload", Json, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("next_run_at", Instant, index=True),
    Column("last_run_id", String),
    Column("last_due_at", Instant),
    Column("missed", Integer, nullable=False),
    Column("problem", String),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    ForeignKeyConstraint(["tenant_id", "thread_id"], ["threads.tenant_id", "threads.thread_id"], ondelete="CASCADE"),
    ForeignKeyConstraint(
        ["tenant_id", "assistant_id"], ["assistants.tenant_id", "assistants.assistant_id"], ondelete="CASCADE"
    ),
    Index(None, "tenant_id", "created_at", "cron_id"),
    Index(None, "tenant_id", "thread_id"),
    Index(None, "tenant_id", "assistant_id"),
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
    Column("size", BigInteger, nullable=False, server_default="0"),  # of the state with its parts, in bytes
)

checkpoint_parts = Table(
    "checkpoint_parts",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("thread_id", String, primary_key=True),
    Column("name", LargeBinary, primary_key=True),
    Column("type", String, nullable=False),
    Column("data", LargeBinary, nullable=False),
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
