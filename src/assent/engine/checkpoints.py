"""LangGraph's checkpointer over our store: one implementation for SQLite and Postgres.

Which tenant a thread belongs to and which attempt writes travel in the config, under a key that clients cannot set.
Imported only where there are graphs: it imports LangGraph.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

import orjson
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from assent.domain.access import DEFAULT_TENANT
from assent.engine.serde import note_lost_write
from assent.ports import Store
from assent.store import checkpoints
from assent.store.checkpoints import Attempt, Stored, StoredWrite
from assent.store.transaction import Tx

SCOPE = "__assent_scope"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose thread it is, and which attempt may write to it; without an attempt nothing is fenced."""

    tenant: str = DEFAULT_TENANT
    attempt: Attempt | None = None


_current: ContextVar[Scope] = ContextVar("scope")


class StoreSaver(BaseCheckpointSaver[int]):
    def __init__(self, store: Store, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._store = store

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A run reads where it writes. On SQLite that is its one writer: going to a reader's thread and back would cost
        a busy process a tenth of the whole run. Everyone else reads beside the writer, and never waits for it."""
        scope = _scope(config)
        look = self._store.write if scope.attempt else self._store.read
        found = await look(scope.tenant, _find, *_address(config), get_checkpoint_id(config))
        return None if found is None else self._tuple(config, *found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Newest first. A metadata filter is applied here, because metadata is kept as text."""
        if config is None:
            raise ValueError("a thread is needed to list checkpoints")
        ns = config["configurable"].get("checkpoint_ns")
        until = get_checkpoint_id(before) if before else None
        found = await self._store.read(
            _scope(config).tenant, _history, _thread(config), ns, get_checkpoint_id(config), until, filter or {}, limit
        )
        for stored, writes in found:
            yield self._tuple(config, stored, writes)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        scope, (thread_id, ns) = _scope(config), _address(config)
        kind, data = self.serde.dumps_typed(checkpoint)
        facts = orjson.dumps(get_checkpoint_metadata(config, metadata), default=str).decode()
        stored = Stored(checkpoint["id"], ns, config["configurable"].get("checkpoint_id"), kind, data, facts)
        with _told():
            await self._store.write(scope.tenant, checkpoints.put, thread_id, stored, scope.attempt)
        return _config(thread_id, ns, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        scope, (thread_id, ns) = _scope(config), _address(config)
        rows = [
            StoredWrite(task_id, WRITES_IDX_MAP.get(channel, index), task_path, channel, *self.serde.dumps_typed(value))
            for index, (channel, value) in enumerate(writes)
        ]
        replace = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        at = str(config["configurable"]["checkpoint_id"])
        with _told():
            await self._store.write(
                scope.tenant, checkpoints.put_writes, thread_id, ns, at, rows, scope.attempt, replace=replace
            )

    def _tuple(self, config: RunnableConfig, stored: Stored, writes: Sequence[StoredWrite]) -> CheckpointTuple:
        thread_id = _thread(config)
        parent = _config(thread_id, stored.ns, stored.parent_id) if stored.parent_id else None
        pending = [(one.task_id, one.channel, self.serde.loads_typed((one.type, one.value))) for one in writes]
        return CheckpointTuple(
            _config(thread_id, stored.ns, stored.checkpoint_id),
            self.serde.loads_typed((stored.type, stored.checkpoint)),
            cast(CheckpointMetadata, orjson.loads(stored.metadata)),
            parent,
            pending,
        )


@contextmanager
def _told() -> Iterator[None]:
    """LangGraph can swallow a failed write; whoever opened the graph hears of it all the same."""
    try:
        yield
    except Exception as error:
        note_lost_write(error)
        raise


def _find(tx: Tx, thread_id: str, ns: str, checkpoint_id: str | None) -> tuple[Stored, Sequence[StoredWrite]] | None:
    found = checkpoints.at(tx, thread_id, ns, checkpoint_id) if checkpoint_id else checkpoints.latest(tx, thread_id, ns)
    return None if found is None else (found, checkpoints.writes_of(tx, thread_id, ns, found.checkpoint_id))


def _history(
    tx: Tx,
    thread_id: str,
    ns: str | None,
    only: str | None,
    before: str | None,
    wanted: dict[str, Any],
    limit: int | None,
) -> list[tuple[Stored, Sequence[StoredWrite]]]:
    """With a metadata filter the limit counts what matches, so everything before it has to be looked at."""
    found = checkpoints.history(tx, thread_id, ns, before=before, limit=None if wanted or only else limit)
    matching = [one for one in found if _matches(one, wanted) and only in (None, one.checkpoint_id)][:limit]
    return [(one, checkpoints.writes_of(tx, thread_id, one.ns, one.checkpoint_id)) for one in matching]


def _matches(stored: Stored, wanted: dict[str, Any]) -> bool:
    facts = orjson.loads(stored.metadata) if wanted else {}
    return all(name in facts and facts[name] == value for name, value in wanted.items())


def _scope(config: RunnableConfig) -> Scope:
    """From the config; where LangGraph made one of its own, as for a subgraph's state, from where it was called."""
    scope: Scope = config["configurable"].get(SCOPE) or _current.get()
    return scope


@contextmanager
def within(scope: Scope) -> Iterator[None]:
    """Everything that is read or written in here, by whatever config, belongs to this scope."""
    token = _current.set(scope)
    try:
        yield
    finally:
        _current.reset(token)


def _thread(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _address(config: RunnableConfig) -> tuple[str, str]:
    return _thread(config), str(config["configurable"].get("checkpoint_ns") or "")


def _config(thread_id: str, ns: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}
