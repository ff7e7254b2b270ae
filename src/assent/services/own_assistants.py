"""Every graph's own assistant, which exists for every tenant without anyone having made it.

It is written the first time a tenant is met after a start, and again when it is asked for by the graph's name and is
gone. Writing is idempotent, so any number of processes may do it at once. It follows its graph: a new title or
description is taken over as long as nobody made a second version. Of a graph that is gone it stays, unseen.
"""

from __future__ import annotations

from collections.abc import Mapping

from assent.domain.assistants import Assistant, graphs_own, own_id, refreshed
from assent.engine.graphs import GraphSpec
from assent.ports import Store
from assent.store import assistants
from assent.store.transaction import Tx


class OwnAssistants:
    def __init__(self, store: Store, graphs: Mapping[str, GraphSpec]) -> None:
        self._store = store
        self._graphs = graphs
        self._met: set[str] = set()
        self.ids = {name: own_id(name) for name in graphs}

    async def ensure(self, tenant: str) -> None:
        """Sees to it that the tenant has them all. Costs something only once after a start."""
        if tenant not in self._met:
            await self._store.write(tenant, self._write_all)
            self._met.add(tenant)

    def write(self, tx: Tx, graph_id: str) -> Assistant:
        spec = self._graphs[graph_id]
        new = graphs_own(graph_id, spec.title, spec.description, tx.now())
        present = assistants.lock(tx, new.id)
        if present is None:
            assistants.insert(tx, new)
            present = assistants.lock(tx, new.id)  # another process may have been first
        current = refreshed(present or new, graph_id, spec.title, spec.description)
        if current != present:
            assistants.correct(tx, current)
        return current

    def _write_all(self, tx: Tx) -> None:
        for graph_id in sorted(self._graphs):  # in one order everywhere, so that two processes cannot deadlock
            self.write(tx, graph_id)
