"""LangGraph's long-term store over ours: what `runtime.store` is in a graph, durable and of one tenant.

An object is made for every graph that is opened. It knows whose it is, so no call can reach another tenant's rows, and
which attempt of a run it serves, so that what a run remembers is fenced like its checkpoints, from whichever task or
thread it is called. Imported only where there are graphs.

There is no vector index: a search with a `query` goes by namespace and filter alone, as with any store of LangGraph's
that has no index configured.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from assent.domain import canonical
from assent.engine.checkpoints import Scope
from assent.engine.manifest import MemorySection
from assent.ports import Store
from assent.store import checkpoints, memory
from assent.store.checkpoints import Attempt
from assent.store.memory import Memory, Namespace, Put
from assent.store.transaction import Tx

log = logging.getLogger(__name__)

_LONGEST_MINUTES = 100 * 365 * 24 * 60
_USUAL = MemorySection()


class MemoryStore(BaseStore):
    """Made on the event loop that the store runs on; nodes in threads reach it through that loop."""

    supports_ttl = True

    def __init__(self, store: Store, scope: Scope, section: MemorySection = _USUAL) -> None:
        self.ttl_config = TTLConfig(default_ttl=section.default_ttl, refresh_on_read=section.refresh_on_read)
        self._store = store
        self._scope = scope
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
        """Reads come first, whatever their place: they see what was there before the batch."""
        for op in ops:
            _check(op)
        puts = [_put(op) for op in ops if isinstance(op, PutOp)]
        tenant = self._scope.tenant
        if puts:
            found = await self._store.write(tenant, _look_up_and_put, ops, puts, self._scope.attempt)
        else:
            found = await self._store.read(tenant, _look_up, ops)
        if brief := [one for op, result in zip(ops, found, strict=True) for one in _to_refresh(op, result)]:
            await self._store.write(tenant, memory.refresh, brief)
        return [_result(op, result) for op, result in zip(ops, found, strict=True)]


def _look_up_and_put(tx: Tx, ops: Sequence[Op], puts: Sequence[Put], attempt: Attempt | None) -> list[Any]:
    if attempt is not None:
        checkpoints.hold(tx, attempt)
    found = _look_up(tx, ops)
    memory.put(tx, puts)
    return found


def _look_up(tx: Tx, ops: Sequence[Op]) -> list[Any]:
    return [_find(tx, op) for op in ops]


def _find(tx: Tx, op: Op) -> Any:
    if isinstance(op, GetOp):
        return memory.get(tx, op.namespace, op.key)
    if isinstance(op, SearchOp):
        return memory.search(tx, op.namespace_prefix, op.filter or {}, limit=op.limit, offset=op.offset)
    if isinstance(op, ListNamespacesOp):
        return _listed(op, memory.namespaces(tx, _common_start(op)))
    return None


def _check(op: Op) -> None:
    validate_op_namespace(op)
    if isinstance(op, SearchOp | ListNamespacesOp) and (op.limit < 0 or op.offset < 0):
        raise ValueError("limit and offset cannot be negative")
    if isinstance(op, GetOp | PutOp) and "\x00" in op.key:
        raise ValueError("a key cannot contain NUL")
    if isinstance(op, SearchOp) and op.query:
        _note_query()


def _put(op: PutOp) -> Put:
    """Refuses what would come back as something else: only JSON is kept."""
    if op.ttl is not None and not 0 <= op.ttl <= _LONGEST_MINUTES:
        raise ValueError(f"ttl must be between 0 and {_LONGEST_MINUTES} minutes")
    if op.value is not None:
        canonical.text(dict(op.value))
    return Put(op.namespace, op.key, op.value, op.ttl)


def _to_refresh(op: Op, found: Any) -> list[Memory]:
    if not isinstance(op, GetOp | SearchOp) or not op.refresh_ttl:
        return []
    read = found if isinstance(found, list) else [found]
    return [one for one in read if one is not None and one.ttl_minutes is not None]


def _result(op: Op, found: Any) -> Result:
    if isinstance(op, GetOp):
        return None if found is None else Item(**_facts(found))
    if isinstance(op, SearchOp):
        return [SearchItem(**_facts(one)) for one in found]
    namespaces: list[Namespace] | None = found
    return namespaces


def _facts(kept: Memory) -> dict[str, Any]:
    return {name: getattr(kept, name) for name in ("namespace", "key", "value", "created_at", "updated_at")}


def _listed(op: ListNamespacesOp, present: Iterable[Namespace]) -> list[Namespace]:
    matching = [one for one in present if all(_matches(one, pattern) for pattern in op.match_conditions or ())]
    return sorted({one[: op.max_depth] for one in matching})[op.offset : op.offset + op.limit]


def _matches(namespace: Namespace, pattern: MatchCondition) -> bool:
    path = pattern.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if pattern.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def _common_start(op: ListNamespacesOp) -> Namespace:
    """The labels that every listed namespace begins with, as far as a prefix says so without a wildcard."""
    for pattern in op.match_conditions or ():
        if pattern.match_type == "prefix":
            end = pattern.path.index("*") if "*" in pattern.path else len(pattern.path)
            return pattern.path[:end]
    return ()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@cache
def _note_query() -> None:
    log.warning("there is no index for searches by meaning: a `query` is left out, filters and namespaces count")
