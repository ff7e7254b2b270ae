"""A project at work: its graphs, opened on our checkpoints and memory, for a tenant.

Nothing of LangGraph is imported before the first graph is: a server without graphs starts fast.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from assent.engine.graphs import Access, GraphSpec
from assent.engine.loader import LoadedGraphs
from assent.errors import NotFound
from assent.ports import Store
from assent.store.checkpoints import Attempt

if TYPE_CHECKING:
    from assent.engine.graphs import AnyPregel, Saver


class Project:
    def __init__(self, loaded: LoadedGraphs, store: Store) -> None:
        self.loaded = loaded
        self._store = store

    @property
    def graphs(self) -> Mapping[str, GraphSpec]:
        return self.loaded.graphs

    @cached_property
    def saver(self) -> Saver:
        from assent.engine.checkpoints import StoreSaver

        return StoreSaver(self._store)

    @asynccontextmanager
    async def open(
        self, graph_id: str, config: Mapping[str, Any], *, access: Access = "threads.create_run", context: Any = None
    ) -> AsyncIterator[AnyPregel]:
        """The graph, ready for `config`, which `config_for` made."""
        from assent.engine.checkpoints import SCOPE, within
        from assent.engine.gatekeeping import ServerKeeper
        from assent.engine.memory import MemoryStore
        from assent.gate.keeper import kept_by

        scope = config["configurable"][SCOPE]
        memory = MemoryStore(self._store, scope, self.loaded.memory)
        spec = self.spec(graph_id)
        opened = spec.open(config, checkpointer=self.saver, store=memory, access=access, context=context)
        with within(scope), kept_by(ServerKeeper(self._store, scope)):
            async with opened as graph:
                yield graph

    def is_gated(self, graph_id: str) -> bool:
        """Whether our gate stands in the graph, as far as that is known before it is opened."""
        spec = self.graphs.get(graph_id)
        return spec is not None and spec.gated

    def spec(self, graph_id: str) -> GraphSpec:
        spec = self.graphs.get(graph_id)
        if spec is not None:
            return spec
        failure = self.loaded.failures.get(graph_id)
        why = f"did not load: {failure}" if failure else "is not served here"
        raise NotFound(f"the graph {graph_id!r} {why}", hint=f"graphs here: {', '.join(sorted(self.graphs)) or 'none'}")


def config_for(tenant: str, thread_id: str, *, attempt: Attempt | None = None, **configurable: Any) -> dict[str, Any]:
    """A config that names a thread and, in a place clients cannot reach, whose it is and who may write to it."""
    from assent.engine.checkpoints import SCOPE, Scope

    named = {"thread_id": thread_id, "checkpoint_ns": "", **configurable}
    return {"configurable": {**named, SCOPE: Scope(tenant, attempt)}}
