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
from functools import partial
from typing import TYPE_CHECKING, Any, cast

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
from assent.kernel import jsontext
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.runs import losses
from assent.runs.checkpoints.backlog import Backlog, Write
from assent.runs.checkpoints.commands import applied
from assent.runs.checkpoints.recent import Recent
from assent.runs.checkpoints.values import Decoder, Encoder, Known
from assent.threads.model.parts import FORMAT, Inline, Ref, pack, pack_checkpoint, refs_in, unpack, unpack_checkpoint
from assent.threads.rows.state import checkpoints, parts
from assent.threads.rows.state.checkpoints import Attempt, Header, Stored, StoredWrite

if TYPE_CHECKING:
    from assent.runs.project.graphs import AnyPregel

SCOPE = "__assent_scope"
_FEWER = "use a smaller `limit`, and pass the last checkpoint as `before` to continue"


Found = tuple[Stored, Sequence[StoredWrite], parts.Loaded]


@dataclass(frozen=True, slots=True)
class Scope:
    """The tenant of the thread, and the attempt that fences its writes; None: no fencing."""

    tenant: str = DEFAULT_TENANT
    attempt: Attempt | None = None
    asked: set[str] = field(default_factory=set, compare=False)
    """The tasks that stored a question. LangGraph does not stream questions of hidden nodes."""
    known: Known = field(default_factory=Known, compare=False, repr=False)
    """The parts that the attempt has stored or loaded."""
    backlog: Backlog | None = field(default=None, compare=False, repr=False)
    heads: dict[str, Found | None] = field(default_factory=dict, compare=False, repr=False)
    """The newest checkpoint of the attempt's thread, as read at its beginning; empty after its first write."""

    async def settled(self) -> None:
        """Stores what the attempt has written, so that it can be read."""
        if self.backlog is not None:
            await self.backlog.flush()


_current: ContextVar[Scope] = ContextVar("scope")


class StoreSaver(BaseCheckpointSaver[int]):
    def __init__(self, store: Store, *, own: Known | None = None, **kwargs: Any) -> None:
        """`own`: the parts that this saver has stored without an attempt, if it is used for one edit."""
        super().__init__(**kwargs)
        self._store = store
        self._own = own
        self._recent = Recent()
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
        thread_id, ns, at = *_address(config), get_checkpoint_id(config)
        if thread_id in scope.heads and not ns and not at:
            row = scope.heads[thread_id]
        else:
            await scope.settled()
            query = self._store.write if scope.attempt else self._store.read
            with losses.noted():
                row = await query(scope.tenant, _find, thread_id, ns, at, self._recent.among)
        return None if row is None else self._tuple(config, *row)

    def newest(self, tx: Tx, thread_id: str) -> Found | None:
        """The newest checkpoint of the graph, to begin an attempt with."""
        return _find(tx, thread_id, "", None, self._recent.among)

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
        await _scope(config).settled()
        with losses.noted():
            rows = await self._store.read(
                _scope(config).tenant, _history, _thread(config), ns, only, until, wanted, limit, self._recent.among
            )
        for row in rows:
            yield self._tuple(config, *row)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        scope, (thread_id, ns) = _scope(config), _address(config)
        known = self._known(scope)
        encoder = Encoder(self.serde, known)
        data = self._encoded(encoder, checkpoint)
        facts = jsontext.dump(get_checkpoint_metadata(config, metadata), default=str)
        parent, new = config["configurable"].get("checkpoint_id"), list(encoder.new.values())
        stored = Stored(checkpoint["id"], ns, parent, FORMAT, data, facts, len(data) + encoder.size)
        put = partial(checkpoints.put, thread_id=thread_id, stored=stored, attempt=scope.attempt, new=new)
        await self._write(scope, put)
        known.add(new)
        return _config(thread_id, ns, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores nothing of an aborted task: with partial output, it would count as finished."""
        if any(channel == ERROR and losses.is_cut_off(value) for channel, value in writes):
            return
        scope, (thread_id, ns) = _scope(config), _address(config)
        known = self._known(scope)
        encoder = Encoder(self.serde, known)
        rows = [
            StoredWrite(
                task_id,
                WRITES_IDX_MAP.get(channel, index),
                task_path,
                channel,
                FORMAT,
                pack(self._written(encoder, channel, value)),
            )
            for index, (channel, value) in enumerate(writes)
        ]
        if any(channel == INTERRUPT for channel, _ in writes):
            scope.asked.add(task_id)
        replace = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        at, new = str(config["configurable"]["checkpoint_id"]), list(encoder.new.values())
        put = partial(
            checkpoints.put_writes,
            thread_id=thread_id,
            ns=ns,
            checkpoint_id=at,
            writes=rows,
            attempt=scope.attempt,
            replace=replace,
            new=new,
        )
        await self._write(scope, put)
        known.add(new)

    async def _write(self, scope: Scope, write: Write) -> None:
        scope.heads.clear()
        with losses.noted():
            losses.require_none()
            if scope.backlog is not None and scope.backlog.accepts:
                scope.backlog.add(write)
            else:
                await scope.settled()
                await self._store.write(scope.tenant, write)

    def _known(self, scope: Scope) -> Known:
        """Without an attempt, loaded parts do not count: they may be deleted before the edit is stored."""
        return scope.known if scope.attempt else self._own or Known()

    def _encoded(self, encoder: Encoder, checkpoint: Checkpoint) -> bytes:
        values = [(name, self._written(encoder, name, value)) for name, value in checkpoint["channel_values"].items()]
        header = self.serde.dumps_typed({**checkpoint, "channel_values": None})
        return pack_checkpoint(Inline(*header), values)

    def _written(self, encoder: Encoder, channel: str, value: Any) -> Ref:
        try:
            return encoder.encode(channel, value)
        except StateError as error:
            error.name_field(channel)
            raise

    def _read(self, decoder: Decoder, row: StoredWrite) -> Any:
        if row.type != FORMAT:  # of an earlier release
            return self.serde.loads_typed((row.type, row.value))
        return decoder.decode(row.channel, unpack(row.value))

    def _checkpoint(self, decoder: Decoder, stored: Stored) -> Checkpoint:
        if stored.type != FORMAT:  # of an earlier release
            whole: Checkpoint = self.serde.loads_typed((stored.type, stored.checkpoint))
            return whole
        header, values = unpack_checkpoint(stored.checkpoint)
        checkpoint: Checkpoint = self.serde.loads_typed(header)
        checkpoint["channel_values"] = {name: decoder.decode(name, ref) for name, ref in values}
        return checkpoint

    def _tuple(
        self, config: RunnableConfig, stored: Stored, writes: Sequence[StoredWrite], loaded: parts.Loaded
    ) -> CheckpointTuple:
        scope = _scope(config)
        decoder = Decoder(self.serde, loaded, scope.known if scope.attempt else None, self._recent)
        thread_id, writes = _thread(config), writes if self._outputs else _unfinished(writes)
        parent = _config(thread_id, stored.ns, stored.parent_id) if stored.parent_id else None
        pending = [(row.task_id, row.channel, self._read(decoder, row)) for row in writes]
        saved = CheckpointTuple(
            _config(thread_id, stored.ns, stored.checkpoint_id),
            self._checkpoint(decoder, stored),
            cast(CheckpointMetadata, jsontext.load(stored.metadata)),
            parent,
            pending,
        )
        return saved if self._graph is None or stored.ns else applied(self._graph, self, saved)


def _find(tx: Tx, thread_id: str, ns: str, checkpoint_id: str | None, recall: parts.Recall) -> Found | None:
    return _found(tx, thread_id, ns, checkpoint_id, {}, recall)


def _found(
    tx: Tx, thread_id: str, ns: str, checkpoint_id: str | None, loaded: parts.Loaded, recall: parts.Recall
) -> Found | None:
    row = checkpoints.at(tx, thread_id, ns, checkpoint_id) if checkpoint_id else checkpoints.latest(tx, thread_id, ns)
    if row is None:
        return None
    writes = checkpoints.writes_of(tx, thread_id, ns, row.checkpoint_id)
    refs = [unpack(write.value) for write in writes if write.type == FORMAT]
    parts.load(tx, thread_id, (refs_in(row.checkpoint) if row.type == FORMAT else []) + refs, loaded, recall)
    return row, writes, loaded


def _history(
    tx: Tx,
    thread_id: str,
    ns: str | None,
    only: str | None,
    before: str | None,
    wanted: dict[str, Any],
    limit: int | None,
    recall: parts.Recall,
) -> list[Found]:
    """With a metadata filter, the limit counts matches, so all checkpoints are read."""
    headers = checkpoints.history(tx, thread_id, ns, before=before, limit=None if wanted or only else limit)
    named = [header for header in headers if only in (None, header.checkpoint_id)]
    matching = [header for header in named if _matches(header, wanted)][:limit]
    tx.limits.require_answer(sum(header.size for header in matching), len(matching), hint=_FEWER)
    loaded: parts.Loaded = {}
    states = [_found(tx, thread_id, header.ns, header.checkpoint_id, loaded, recall) for header in matching]
    return [state for state in states if state is not None]


def _unfinished(writes: Sequence[StoredWrite]) -> list[StoredWrite]:
    """The writes of tasks without an output: questions and errors."""
    finished = {write.task_id for write in writes if write.channel not in WRITES_IDX_MAP}
    return [write for write in writes if write.task_id not in finished]


def _matches(stored: Header, wanted: dict[str, Any]) -> bool:
    facts = jsontext.load(stored.metadata) if wanted else {}
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
