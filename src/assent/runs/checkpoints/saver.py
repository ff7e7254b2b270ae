"""LangGraph's checkpointer on our store: one implementation for SQLite and Postgres.

The config contains the thread's tenant and the writing attempt, under a key that clients cannot set. This module
imports LangGraph, so import it only if there are graphs.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

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
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT

from assent.errors import StateError
from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.runs import losses
from assent.runs.checkpoints.commands import applied
from assent.threads.rows import checkpoints
from assent.threads.rows.checkpoints import Attempt, Header, Stored, StoredWrite

if TYPE_CHECKING:
    from assent.runs.project.graphs import AnyPregel

SCOPE = "__assent_scope"
_FEWER = "use a smaller `limit`, and pass the last checkpoint as `before` to continue"


@dataclass(frozen=True, slots=True)
class Scope:
    """The tenant of the thread, and the attempt that fences its writes; None: no fencing."""

    tenant: str = DEFAULT_TENANT
    attempt: Attempt | None = None
    asked: set[str] = field(default_factory=set, compare=False)
    """The tasks that stored a question. LangGraph does not stream questions of hidden nodes."""


_current: ContextVar[Scope] = ContextVar("scope")


class StoreSaver(BaseCheckpointSaver[int]):
    def __init__(self, store: Store, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._store = store
        self._outputs = True
        self._graph: AnyPregel | None = None

    def without_outputs(self) -> StoreSaver:
        """A saver that omits the outputs of finished tasks, which can make the state unreadable. Questions and errors
        of tasks stay."""
        view = copy.copy(self)
        view._outputs = False
        return view

    def with_commands(self, graph: AnyPregel) -> StoreSaver:
        """A saver that applies the writes of commands to checkpoints of this graph. Runs apply them by themselves."""
        view = copy.copy(self)
        view._graph = graph
        return view

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A run reads on the writer's connection: on SQLite, a switch to a reader thread would cost a busy process a
        tenth of the run. Other callers use readers, which do not wait for the writer."""
        scope = _scope(config)
        query = self._store.write if scope.attempt else self._store.read
        with losses.noted():
            row = await query(scope.tenant, _find, *_address(config), get_checkpoint_id(config))
        return None if row is None else self._tuple(config, *row)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Newest first. Applies the metadata filter here, because metadata is stored as text."""
        if config is None:
            raise ValueError("a thread is needed to list checkpoints")
        ns = config["configurable"].get("checkpoint_ns")
        until = get_checkpoint_id(before) if before else None
        only, wanted = get_checkpoint_id(config), filter or {}
        with losses.noted():
            rows = await self._store.read(
                _scope(config).tenant, _history, _thread(config), ns, only, until, wanted, limit
            )
        for stored, writes in rows:
            yield self._tuple(config, stored, writes)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        scope, (thread_id, ns) = _scope(config), _address(config)
        kind, data = self._encoded(checkpoint)
        facts = orjson.dumps(get_checkpoint_metadata(config, metadata), default=str).decode()
        stored = Stored(checkpoint["id"], ns, config["configurable"].get("checkpoint_id"), kind, data, facts)
        with losses.noted():
            losses.require_none()
            await self._store.write(scope.tenant, checkpoints.put, thread_id, stored, scope.attempt)
        return _config(thread_id, ns, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores nothing of an aborted task: with partial output, it would count as finished."""
        if any(channel == ERROR and losses.is_cut_off(value) for channel, value in writes):
            return
        scope, (thread_id, ns) = _scope(config), _address(config)
        rows = [
            StoredWrite(task_id, WRITES_IDX_MAP.get(channel, index), task_path, channel, *self._written(channel, value))
            for index, (channel, value) in enumerate(writes)
        ]
        if any(channel == INTERRUPT for channel, _ in writes):
            scope.asked.add(task_id)
        replace = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        at = str(config["configurable"]["checkpoint_id"])
        with losses.noted():
            losses.require_none()
            await self._store.write(
                scope.tenant, checkpoints.put_writes, thread_id, ns, at, rows, scope.attempt, replace=replace
            )

    def _encoded(self, checkpoint: Checkpoint) -> tuple[str, bytes]:
        try:
            return self.serde.dumps_typed(checkpoint)
        except StateError as error:
            for channel in filter(None, map(self._flawed, checkpoint["channel_values"].items())):
                error.name_field(channel)
                break
            raise

    def _flawed(self, entry: tuple[str, Any]) -> str | None:
        """The channel, if its value cannot be stored."""
        channel, value = entry
        try:
            self.serde.dumps_typed(value)
        except StateError:
            return channel
        return None

    def _written(self, channel: str, value: Any) -> tuple[str, bytes]:
        try:
            return self.serde.dumps_typed(value)
        except StateError as error:
            error.name_field(channel)
            raise

    def _tuple(self, config: RunnableConfig, stored: Stored, writes: Sequence[StoredWrite]) -> CheckpointTuple:
        thread_id, writes = _thread(config), writes if self._outputs else _unfinished(writes)
        parent = _config(thread_id, stored.ns, stored.parent_id) if stored.parent_id else None
        pending = [(row.task_id, row.channel, self.serde.loads_typed((row.type, row.value))) for row in writes]
        loaded = CheckpointTuple(
            _config(thread_id, stored.ns, stored.checkpoint_id),
            self.serde.loads_typed((stored.type, stored.checkpoint)),
            cast(CheckpointMetadata, orjson.loads(stored.metadata)),
            parent,
            pending,
        )
        return loaded if self._graph is None or stored.ns else applied(self._graph, self, loaded)


def _find(tx: Tx, thread_id: str, ns: str, checkpoint_id: str | None) -> tuple[Stored, Sequence[StoredWrite]] | None:
    row = checkpoints.at(tx, thread_id, ns, checkpoint_id) if checkpoint_id else checkpoints.latest(tx, thread_id, ns)
    return None if row is None else (row, checkpoints.writes_of(tx, thread_id, ns, row.checkpoint_id))


def _history(
    tx: Tx,
    thread_id: str,
    ns: str | None,
    only: str | None,
    before: str | None,
    wanted: dict[str, Any],
    limit: int | None,
) -> list[tuple[Stored, Sequence[StoredWrite]]]:
    """With a metadata filter, the limit counts matches, so all checkpoints are read."""
    headers = checkpoints.history(tx, thread_id, ns, before=before, limit=None if wanted or only else limit)
    named = [header for header in headers if only in (None, header.checkpoint_id)]
    matching = [header for header in named if _matches(header, wanted)][:limit]
    tx.limits.require_answer(sum(header.size for header in matching), len(matching), hint=_FEWER)
    states = [_find(tx, thread_id, header.ns, header.checkpoint_id) for header in matching]
    return [state for state in states if state is not None]


def _unfinished(writes: Sequence[StoredWrite]) -> list[StoredWrite]:
    """The writes of tasks without an output: questions and errors."""
    finished = {write.task_id for write in writes if write.channel not in WRITES_IDX_MAP}
    return [write for write in writes if write.task_id not in finished]


def _matches(stored: Header, wanted: dict[str, Any]) -> bool:
    facts = orjson.loads(stored.metadata) if wanted else {}
    return all(name in facts and facts[name] == value for name, value in wanted.items())


def _scope(config: RunnableConfig) -> Scope:
    """The scope of the config; for configs that LangGraph creates, such as a subgraph's, the current scope."""
    scope: Scope = config["configurable"].get(SCOPE) or _current.get()
    return scope


@contextmanager
def within(scope: Scope) -> Iterator[None]:
    """Makes this scope the current one for configs without a scope."""
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
