"""Each graph's own assistant, which the server creates for every tenant.

It is written on the tenant's first request after a start, and again if it is requested by the graph's name and missing.
The write is idempotent, so processes may run it concurrently. A new title or description of the graph is copied while
the assistant has only one version. The own assistant of a removed graph stays, hidden.
"""

from __future__ import annotations

from collections.abc import Mapping

from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.runs.project.graphs import GraphSpec
from assent.threads.model.assistants import Assistant, graphs_own, own_id, refreshed
from assent.threads.rows import assistants


class OwnAssistants:
    def __init__(self, store: Store, graphs: Mapping[str, GraphSpec]) -> None:
        self._store = store
        self._graphs = graphs
        self._ensured: set[str] = set()
        self.ids = {name: own_id(name) for name in graphs}

    async def ensure(self, tenant: str) -> None:
        """Writes the tenant's own assistants, once per start."""
        if tenant not in self._ensured:
            await self._store.write(tenant, self._write_all)
            self._ensured.add(tenant)

    def write(self, tx: Tx, graph_id: str) -> Assistant:
        spec = self._graphs[graph_id]
        new = graphs_own(graph_id, spec.title, spec.description, tx.now())
        present = assistants.lock(tx, new.id)
        if present is not None and present.owner is not None:  # a client took this id before the graph existed
            assistants.remove(tx, new.id)
            present = None
        if present is None:
            assistants.insert(tx, new)
            present = assistants.lock(tx, new.id)  # another process may have been first
        current = refreshed(present or new, graph_id, spec.title, spec.description)
        if current != present:
            assistants.correct(tx, current)
        return current

    def _write_all(self, tx: Tx) -> None:
        for graph_id in sorted(self._graphs):  # a fixed order prevents deadlocks between processes
            self.write(tx, graph_id)
