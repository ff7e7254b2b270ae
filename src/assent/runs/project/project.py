"""A served project: opens its graphs with our checkpoints and memory for a tenant.

LangGraph is imported with the first graph only, so that a server without graphs starts fast.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from assent.errors import NotFound
from assent.kernel.seals import Sealer
from assent.kernel.store.ports import Store
from assent.review.model.secrets import Path
from assent.runs.project.failures import SHOWN, Failures
from assent.runs.project.graphs import Access, GraphSpec
from assent.runs.project.loader import LoadedGraphs
from assent.threads.rows.state.checkpoints import Attempt

if TYPE_CHECKING:
    from assent.runs.checkpoints.saver import StoreSaver
    from assent.runs.project.graphs import AnyPregel


class Project:
    def __init__(
        self, loaded: LoadedGraphs, store: Store, failures: Failures = SHOWN, sealer: Sealer | None = None
    ) -> None:
        """`sealer`: required where runs are executed; it seals what their graphs keep in the state."""
        self.loaded = loaded
        self.failures = failures
        self._store = store
        self._sealer = sealer

    @property
    def graphs(self) -> Mapping[str, GraphSpec]:
        return self.loaded.graphs

    @cached_property
    def failed(self) -> Mapping[str, str]:
        """The graphs that did not load, with the reason shown to callers."""
        return {name: self.failures.of_load(error) for name, error in self.loaded.failures.items()}

    @cached_property
    def saver(self) -> StoreSaver:
        from assent.runs.checkpoints.saver import StoreSaver

        return StoreSaver(self._store)

    @asynccontextmanager
    async def open(
        self, graph_id: str, config: Mapping[str, Any], *, access: Access = "threads.create_run", context: Any = None
    ) -> AsyncIterator[AnyPregel]:
        """Opens the graph for a config of `config_for`."""
        from assent.gate.keeper import using_keeper
        from assent.runs.checkpoints.saver import SCOPE, within
        from assent.runs.memory.store import MemoryStore
        from assent.runs.project.gate_keeper import ServerKeeper

        scope = config["configurable"][SCOPE]
        memory = MemoryStore(self._store, scope, self.loaded.memory, self.loaded.index)
        spec = self.spec(graph_id)
        opened = spec.open(config, checkpointer=self.saver, store=memory, access=access, context=context)
        with within(scope), using_keeper(ServerKeeper(self._store, scope, self._sealer)):
            async with opened as graph:
                yield graph

    def is_gated(self, graph_id: str) -> bool:
        """Whether the graph contains the gate, if that is known before it is opened."""
        spec = self.graphs.get(graph_id)
        return spec is not None and spec.gated

    def will_load(self, graph_id: str) -> bool:
        """Whether the graph belongs to the project but did not load, so that its author has to correct it."""
        return graph_id in self.failed

    def marks(self, graph_id: str | None, tool: str) -> frozenset[Path]:
        """The paths marked as secret in the schema of this tool, if known before the graph is opened. Without a
        `graph_id`, of all graphs."""
        specs = [spec for name, spec in self.graphs.items() if graph_id in (None, name)]
        return frozenset[Path]().union(*(spec.marks.get(tool, ()) for spec in specs))

    def spec(self, graph_id: str) -> GraphSpec:
        spec = self.graphs.get(graph_id)
        if spec is not None:
            return spec
        failure = self.failed.get(graph_id)
        why = f"did not load: {failure}" if failure else "is not served here"
        raise NotFound(f"the graph {graph_id!r} {why}", hint=f"graphs here: {', '.join(sorted(self.graphs)) or 'none'}")


def has_asked(config: Mapping[str, Any]) -> bool:
    """Whether a task has stored a question under this config."""
    from assent.runs.checkpoints.saver import SCOPE

    return bool(config["configurable"][SCOPE].asked)


def config_for(tenant: str, thread_id: str, *, attempt: Attempt | None = None, **configurable: Any) -> dict[str, Any]:
    """A config with a thread and its scope."""
    named = {"thread_id": thread_id, "checkpoint_ns": "", **configurable}
    return {"configurable": {**named, **scope_of(tenant, attempt)}}


def scope_of(tenant: str, attempt: Attempt | None, **read: Any) -> dict[str, Any]:
    """The tenant and the writing attempt, under a key that clients cannot set."""
    from assent.runs.checkpoints.saver import SCOPE, Scope

    return {SCOPE: Scope(tenant, attempt, **read)}
