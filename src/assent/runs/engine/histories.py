"""Reads and edits the states of a thread.

An edit is a draft: LangGraph's writes are held, and the caller stores them together with the thread's row in one
transaction, which can still detect that the thread has changed.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from assent.errors import AssentError, BadRequest, NotFound
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.runs.checkpoints.commands import command_of
from assent.runs.engine import outcomes, states
from assent.runs.engine.attempts import is_lasting
from assent.runs.engine.drafts import Draft, Write
from assent.runs.engine.state_reads import read_state, with_commands
from assent.runs.project.failures import Failures
from assent.runs.project.graphs import Access
from assent.runs.project.project import Project, config_for
from assent.runs.sources.source import Past
from assent.threads.model.runs import Outcome, RunStatus
from assent.threads.rows.state import checkpoints

if TYPE_CHECKING:
    from langgraph.checkpoint.base import CheckpointTuple
    from langgraph.types import StateSnapshot, StateUpdate

    from assent.runs.project.graphs import AnyPregel

Address = Mapping[str, Any]
"""A client's address of a checkpoint: any of `checkpoint_id`, `checkpoint_ns` and `checkpoint_map`."""

_ADDRESS = ("checkpoint_id", "checkpoint_ns", "checkpoint_map")


@dataclass(frozen=True, slots=True)
class Update:
    """One update of a state in the name of a node: by values, or by a command."""

    values: Any = None
    as_node: str | None = None
    command: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """An edited state that is not stored yet. `head`: the latest checkpoint before the edit."""

    head: str | None
    checkpoint: dict[str, Any]
    outcome: Outcome
    state: dict[str, Any]
    writes: tuple[Write, ...]

    def store(self, tx: Tx) -> None:
        for write in self.writes:
            write(tx)


class Histories:
    def __init__(self, store: Store, project: Project) -> None:
        self._store = store
        self._project = project

    @property
    def failures(self) -> Failures:
        return self._project.failures

    async def state(
        self, tenant: str, graph_id: str, thread_id: str, *, at: Address | None = None, subgraphs: bool = False
    ) -> StateSnapshot:
        """The latest state, or the one at a checkpoint."""
        config = _config(tenant, thread_id, at)
        async with self._opened(tenant, graph_id, config, "threads.read") as (graph, _), _refusing(self.failures):
            return await read_state(graph, config, subgraphs=subgraphs)

    async def past(
        self,
        tenant: str,
        graph_id: str,
        thread_id: str,
        *,
        of: Address | None = None,
        before: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int,
    ) -> list[StateSnapshot]:
        """The past states, newest first."""
        config = _config(tenant, thread_id, of)
        until: Any = {"configurable": {"checkpoint_id": before}} if before else None
        async with self._opened(tenant, graph_id, config, "threads.read") as (graph, _), _refusing(self.failures):
            snapshots = graph.aget_state_history(config, filter=dict(metadata or {}), before=until, limit=limit)
            return [snapshot async for snapshot in snapshots]

    async def any_holds(
        self, tenant: str, graph_id: str, thread_id: str, holds: Callable[[Any], Awaitable[bool]]
    ) -> bool:
        """Whether `holds` is true of any stored checkpoint of the thread, subgraphs included. Refuses unreadable
        ones."""
        config = _config(tenant, thread_id, None)
        headers = await self._store.read(tenant, checkpoints.history, thread_id, None, before=None, limit=None)
        async with self._opened(tenant, graph_id, config, "threads.read") as (graph, _), _refusing(self.failures):
            saver: Any = graph.checkpointer
            for header in headers:
                at = {"checkpoint_ns": header.ns, "checkpoint_id": header.checkpoint_id}
                checkpoint = await saver.aget_tuple(_config(tenant, thread_id, at))
                if checkpoint is not None and await holds(_stored(checkpoint)):
                    return True
        return False

    async def edit(
        self,
        tenant: str,
        graph_id: str,
        thread_id: str,
        supersteps: Sequence[Sequence[Update]],
        *,
        at: Address | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Edit:
        """The state after these supersteps, applied in order."""
        config: Any = {**_config(tenant, thread_id, at), "metadata": dict(metadata or {})}
        async with self._opened(tenant, graph_id, config, "threads.update") as (graph, draft):
            head = await draft.read(tenant, checkpoints.latest, thread_id, "")
            await _require_checkpoint(draft, tenant, thread_id, at or {})
            async with _refusing(self.failures):
                made = await graph.abulk_update_state(
                    config, [[_update(update) for update in step] for step in supersteps]
                )
                snapshot = await graph.aget_state(_config(tenant, thread_id, None))
        return Edit(
            head.checkpoint_id if head else None,
            states.address(made) or {},
            outcomes.of_state(snapshot, RunStatus.SUCCESS),
            states.state_of(snapshot, self.failures),
            tuple(draft.held),
        )

    async def adopt(
        self, tenant: str, graph_id: str, thread_id: str, read: Callable[[AnyPregel], Awaitable[Past]]
    ) -> tuple[Edit, Past]:
        """A thread with the history that `read` imports, in the types of the graph, as an edit."""
        from assent.runs.engine.standing import require_same

        config = _config(tenant, thread_id, None)
        async with self._opened(tenant, graph_id, config, "threads.update") as (graph, draft), _refusing(self.failures):
            past = await read(graph)
            for checkpoint in past.checkpoints:
                await _put(graph.checkpointer, tenant, thread_id, checkpoint)
            if past.resend:
                await graph.abulk_update_state(config, [[_update(Update(as_node=node)) for node in past.resend]])
            snapshot = await graph.aget_state(config)
            await require_same(graph, snapshot, past)
        at, state = states.address(snapshot.config) or {}, states.state_of(snapshot, self.failures)
        return Edit(None, at, replace(_rest(snapshot), notes=past.notes), state, tuple(draft.held)), past

    @asynccontextmanager
    async def _opened(
        self, tenant: str, graph_id: str, config: Any, access: Access
    ) -> AsyncIterator[tuple[AnyPregel, Draft]]:
        from assent.runs.checkpoints.saver import StoreSaver
        from assent.runs.checkpoints.values import Known

        draft = Draft(self._store, tenant)
        async with self._project.open(graph_id, config, access=access) as graph:
            ours = cast(StoreSaver, graph.checkpointer)
            view = copy.copy(graph)
            view.checkpointer = StoreSaver(cast(Store, draft), own=Known(), serde=ours.serde)
            yield with_commands(view), draft


@asynccontextmanager
async def _refusing(failures: Failures) -> AsyncIterator[None]:
    """Translates errors of LangGraph or the graph's reducers about an invalid request or state into `BadRequest`."""
    try:
        yield
    except AssentError:
        raise
    except BaseException as error:
        if not is_lasting(error):
            raise
        raise BadRequest(failures.of_request(error)) from error


async def _put(saver: Any, tenant: str, thread_id: str, checkpoint: CheckpointTuple) -> None:
    """Stores one checkpoint with its tasks' writes under its own id."""
    named, parent = checkpoint.config["configurable"], (checkpoint.parent_config or {}).get("configurable", {})
    ns = named.get("checkpoint_ns") or ""
    before = config_for(tenant, thread_id, checkpoint_ns=ns, checkpoint_id=parent.get("checkpoint_id"))
    await saver.aput(before, checkpoint.checkpoint, checkpoint.metadata, {})
    here = config_for(tenant, thread_id, checkpoint_ns=ns, checkpoint_id=checkpoint.checkpoint["id"])
    writes_by_task: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in checkpoint.pending_writes or ():
        writes_by_task.setdefault(task, []).append((channel, value))
    for task, writes in writes_by_task.items():
        await saver.aput_writes(here, writes, task)


def _rest(snapshot: StateSnapshot) -> Outcome:
    """The outcome of the thread's last run, derived from its state."""
    failed = next((str(task.error) for task in snapshot.tasks if task.error), None)
    if failed is None:
        return outcomes.of_state(snapshot, RunStatus.SUCCESS)
    return outcomes.of_state(snapshot, RunStatus.ERROR, {"error": failed.partition("(")[0], "message": failed})


def _stored(checkpoint: Any) -> list[Any]:
    writes = [{channel: value} for _, channel, value in checkpoint.pending_writes or ()]
    return [checkpoint.checkpoint["channel_values"], checkpoint.metadata, writes]


async def _require_checkpoint(draft: Draft, tenant: str, thread_id: str, at: Address) -> None:
    """Refuses a missing checkpoint, at which LangGraph would silently restart the thread."""
    wanted = at.get("checkpoint_id")
    if wanted and await draft.read(tenant, checkpoints.at, thread_id, at.get("checkpoint_ns") or "", wanted) is None:
        raise NotFound(f"Checkpoint {wanted} not found")


def _config(tenant: str, thread_id: str, at: Address | None) -> Any:
    named = {name: at[name] for name in _ADDRESS if at.get(name)} if at else {}
    return config_for(tenant, thread_id, **named)


def _update(update: Update) -> StateUpdate:
    from langgraph.types import StateUpdate

    values: Any = command_of(update.command) if update.command else update.values
    return StateUpdate(values, update.as_node)
