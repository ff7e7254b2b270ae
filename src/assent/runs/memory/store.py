"""LangGraph's long-term store on our store: the durable `runtime.store` of a graph, for one tenant.

Each opened graph gets its own object. It is bound to a tenant, so that no call can reach another tenant's rows, and to
the attempt of a run, so that writes are fenced like checkpoints, from any task or thread. Import it only if there are
graphs.

Without an index, a search with a `query` uses only namespace and filter, as any LangGraph store without one does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypedDict

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from assent.kernel import canonical
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.runs.checkpoints.saver import Scope
from assent.runs.memory.namespaces import Match, common_start, listed
from assent.threads.rows.memory import items as memory
from assent.threads.rows.memory.items import LONGEST_MINUTES, NOBODY, Memory, MemorySection, Namespace, Near, Put
from assent.threads.rows.state import checkpoints
from assent.threads.rows.state.checkpoints import Attempt

if TYPE_CHECKING:
    from assent.runs.memory.index import VectorIndex

log = logging.getLogger(__name__)

_USUAL = MemorySection()


class Page(TypedDict):
    limit: int
    offset: int


class MemoryStore(BaseStore):
    """Created on the store's event loop; nodes in threads call it through that loop."""

    supports_ttl = True

    def __init__(
        self, store: Store, scope: Scope, section: MemorySection = _USUAL, index: VectorIndex | None = None
    ) -> None:
        self.ttl_config = TTLConfig(default_ttl=section.default_ttl, refresh_on_read=section.refresh_on_read)
        self._store = store
        self._scope = scope
        self._index = index
        self._loop = asyncio.get_running_loop()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        if _running_loop() is self._loop:
            raise asyncio.InvalidStateError("this would block the event loop: await the store's `a…` methods here")
        return asyncio.run_coroutine_threadsafe(self._run(list(ops)), self._loop).result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        work = self._run(list(ops))
        if asyncio.get_running_loop() is self._loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _run(self, ops: Sequence[Op]) -> list[Result]:
        """Reads run first, in any position, and see the state before the batch."""
        for op in ops:
            _check(op)
        puts = [await self._with_vectors(op) for op in ops if isinstance(op, PutOp)]
        near = await self._near(ops)
        tenant = self._scope.tenant
        if puts:
            results = await self._store.write(tenant, _look_up_and_put, ops, near, puts, self._scope.attempt)
        else:
            results = await self._store.read(tenant, _look_up, ops, near)
        if brief := [read for op, result in zip(ops, results, strict=True) for read in _to_refresh(op, result)]:
            await self._store.write(tenant, memory.refresh, brief)
        return [_result(op, result) for op, result in zip(ops, results, strict=True)]

    async def _with_vectors(self, op: PutOp) -> Put:
        put = _put(op)
        return put if self._index is None else await self._index.with_vectors(put, op.index)

    async def _near(self, ops: Sequence[Op]) -> Mapping[str, Near]:
        """By query."""
        queries = dict.fromkeys(op.query for op in ops if isinstance(op, SearchOp) and op.query)
        if queries and self._index is None:
            _note_query()
        return {} if self._index is None else {query: await self._index.near(query) for query in queries}


def _look_up_and_put(
    tx: Tx, ops: Sequence[Op], near: Mapping[str, Near], puts: Sequence[Put], attempt: Attempt | None
) -> list[Any]:
    if attempt is not None:
        checkpoints.hold(tx, attempt)
    results = _look_up(tx, ops, near)
    memory.put(tx, puts, NOBODY if attempt is None else memory.ownership(tx, attempt.run_id))
    return results


def _look_up(tx: Tx, ops: Sequence[Op], near: Mapping[str, Near]) -> list[Any]:
    return [_find(tx, op, near) for op in ops]


def _find(tx: Tx, op: Op, near: Mapping[str, Near]) -> Any:
    if isinstance(op, GetOp):
        return memory.get(tx, op.namespace, op.key)
    if isinstance(op, SearchOp):
        place, page = (tx, op.namespace_prefix, op.filter or {}), Page(limit=op.limit, offset=op.offset)
        if op.query and op.query in near:
            return memory.nearest(*place, near[op.query], **page)
        return memory.search(*place, **page)
    if isinstance(op, ListNamespacesOp):
        matches = [Match(each.path, at_end=each.match_type == "suffix") for each in op.match_conditions or ()]
        present = memory.namespaces(tx, common_start(matches))
        return listed(present, matches, max_depth=op.max_depth, limit=op.limit, offset=op.offset)
    return None


def _check(op: Op) -> None:
    validate_op_namespace(op)
    if isinstance(op, SearchOp | ListNamespacesOp) and (op.limit < 0 or op.offset < 0):
        raise ValueError("limit and offset cannot be negative")
    if isinstance(op, GetOp | PutOp) and "\x00" in op.key:
        raise ValueError("a key cannot contain NUL")


def _put(op: PutOp) -> Put:
    """Refuses values other than JSON, which would not be read back unchanged."""
    if op.ttl is not None and not 0 <= op.ttl <= LONGEST_MINUTES:
        raise ValueError(f"ttl must be between 0 and {LONGEST_MINUTES} minutes")
    if op.value is not None:
        canonical.text(dict(op.value))
    return Put(op.namespace, op.key, op.value, op.ttl)


def _to_refresh(op: Op, result: Any) -> list[Memory]:
    if not isinstance(op, GetOp | SearchOp) or not op.refresh_ttl:
        return []
    read = result if isinstance(result, list) else [result]
    return [item for item in read if item is not None and item.ttl_minutes is not None]


def _result(op: Op, result: Any) -> Result:
    if isinstance(op, GetOp):
        return None if result is None else Item(**_facts(result))
    if isinstance(op, SearchOp):
        return [SearchItem(**_facts(item), score=item.score) for item in result]
    namespaces: list[Namespace] | None = result
    return namespaces


def _facts(item: Memory) -> dict[str, Any]:
    return {name: getattr(item, name) for name in ("namespace", "key", "value", "created_at", "updated_at")}


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@cache
def _note_query() -> None:
    log.warning("there is no store.index: `query` is ignored, only namespace and filter apply")
