"""The states a thread went through: read, and edited.

An edit is a draft: what LangGraph would have stored is held, and whoever asked for the edit stores it together with
the thread's row, in one transaction that can still find that the thread has moved on meanwhile.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from assent.domain.runs import Outcome, RunStatus
from assent.engine import outcomes, states
from assent.engine.commands import command_of
from assent.engine.drafts import Draft, Write
from assent.engine.graphs import Access
from assent.engine.project import Project, config_for
from assent.errors import BadRequest, NotFound
from assent.ports import Store
from assent.store import checkpoints
from assent.store.transaction import Tx

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot, StateUpdate

    from assent.engine.graphs import AnyPregel

Address = Mapping[str, Any]
"""A checkpoint as clients name it: by `checkpoint_id`, `checkpoint_ns` and `checkpoint_map`, or by fewer of them."""

_ADDRESS = ("checkpoint_id", "checkpoint_ns", "checkpoint_map")


@dataclass(frozen=True, slots=True)
class Update:
    """One change of a state, as if a node had made it: by values, or by a command."""

    values: Any = None
    as_node: str | None = None
    command: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """An edited state that is not stored yet. `head` was the latest checkpoint when it was made."""

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

    async def state(
        self, tenant: str, graph_id: str, thread_id: str, *, at: Address | None = None, subgraphs: bool = False
    ) -> StateSnapshot:
        """The latest state, or the one at a checkpoint."""
        config = _config(tenant, thread_id, at)
        async with self._opened(tenant, graph_id, config, "threads.read") as (graph, _), _refusing(ValueError):
            return await graph.aget_state(config, subgraphs=subgraphs)

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
        """The states there were, newest first."""
        config = _config(tenant, thread_id, of)
        until: Any = {"configurable": {"checkpoint_id": before}} if before else None
        async with self._opened(tenant, graph_id, config, "threads.read") as (graph, _), _refusing(ValueError):
            found = graph.aget_state_history(config, filter=dict(metadata or {}), before=until, limit=limit)
            return [snapshot async for snapshot in found]

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
        """What the state would be after these changes, each superstep's on top of the one before."""
        from langgraph.errors import InvalidUpdateError

        config: Any = {**_config(tenant, thread_id, at), "metadata": dict(metadata or {})}
        async with self._opened(tenant, graph_id, config, "threads.update") as (graph, draft):
            head = await draft.read(tenant, checkpoints.latest, thread_id, "")
            await _require_checkpoint(draft, tenant, thread_id, at or {})
            async with _refusing(InvalidUpdateError, ValueError, TypeError):
                made = await graph.abulk_update_state(config, [[_update(one) for one in step] for step in supersteps])
            snapshot = await graph.aget_state(_config(tenant, thread_id, None))
        return Edit(
            head.checkpoint_id if head else None,
            states.address(made) or {},
            outcomes.of_state(snapshot, RunStatus.SUCCESS),
            states.state_of(snapshot),
            tuple(draft.held),
        )

    @asynccontextmanager
    async def _opened(
        self, tenant: str, graph_id: str, config: Any, access: Access
    ) -> AsyncIterator[tuple[AnyPregel, Draft]]:
        from assent.engine.checkpoints import StoreSaver

        draft = Draft(self._store, tenant)
        async with self._project.open(graph_id, config, access=access) as graph:
            ours = cast(StoreSaver, graph.checkpointer)
            view = copy.copy(graph)
            view.checkpointer = StoreSaver(cast(Store, draft), serde=ours.serde)
            yield view, draft


@asynccontextmanager
async def _refusing(*unfit: type[Exception]) -> AsyncIterator[None]:
    """What LangGraph raises about a request that does not fit the graph is the request's fault."""
    try:
        yield
    except unfit as error:
        raise BadRequest(str(error)) from error


async def _require_checkpoint(draft: Draft, tenant: str, thread_id: str, at: Address) -> None:
    """An edit of a checkpoint that is not there would begin the thread anew, without a word."""
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
