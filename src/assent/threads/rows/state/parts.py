"""The parts of the checkpoints and writes of a thread, as rows. A deleted thread leaves no part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import chain
from typing import Any

from sqlalchemy import BindParameter, bindparam, select

from assent.kernel.store.tables import TENANT, checkpoint_parts, checkpoint_writes, checkpoints, runs
from assent.kernel.store.transaction import Tx
from assent.threads.model import parts
from assent.threads.model.parts import FORMAT, Inline, Listed, Part, Ref

Loaded = dict[bytes, Any]
"""By name, parts, and what `Recall` has instead of them."""
Recall = Callable[[Set[bytes]], Loaded]
"""Those of the parts that the caller has in memory."""

_ADD = (
    "INSERT INTO checkpoint_parts (tenant_id, thread_id, name, type, data) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (tenant_id, thread_id, name) DO NOTHING"
)
_NAMED = "SELECT name, type, data FROM checkpoint_parts WHERE tenant_id = ? AND thread_id = ? AND name "
_DROP = "DELETE FROM checkpoint_parts WHERE tenant_id = ? AND thread_id = ? AND name = ?"
_AT_ONCE = 500
_THREAD: BindParameter[str] = bindparam("thread_id")
_ALL_NAMES = select(checkpoint_parts.c.name).where(
    checkpoint_parts.c.tenant_id == TENANT, checkpoint_parts.c.thread_id == _THREAD
)
_ACTIVE_RUNS = (
    select(runs.c.status)
    .where(runs.c.tenant_id == TENANT, runs.c.thread_id == _THREAD, runs.c.status.in_(("pending", "running")))
    .with_for_update()
)
"""Locked, so that no run begins and loads parts before they are deleted."""
_CHECKPOINTS = select(checkpoints.c.checkpoint).where(
    checkpoints.c.tenant_id == TENANT, checkpoints.c.thread_id == _THREAD, checkpoints.c.type == FORMAT
)
_WRITES = select(checkpoint_writes.c.value).where(
    checkpoint_writes.c.tenant_id == TENANT,
    checkpoint_writes.c.thread_id == _THREAD,
    checkpoint_writes.c.type == FORMAT,
)


def add(tx: Tx, thread_id: str, new: Iterable[Part]) -> None:
    """In the order of names: two transactions that add the same parts cannot deadlock."""
    rows = [(tx.tenant, thread_id, *part) for part in sorted(set(new))]
    if rows:
        tx.sql(_ADD if tx.dialect == "sqlite" else _ADD.replace("?", "%s"), rows)


def load(tx: Tx, thread_id: str, refs: Iterable[Ref], loaded: Loaded, recall: Recall) -> None:
    """Loads the parts of the values, level by level, into `loaded`."""
    _descend(tx, thread_id, refs, loaded, recall, leaves=True)


def sweep(tx: Tx, thread_id: str) -> None:
    """Deletes the parts that no checkpoint and no write of the thread uses. The caller has locked the thread. Leaves
    them to a later sweep while a run is executed: an attempt does not store parts again that it has loaded. Deletes
    nothing if a list cannot be followed to its end: `UnreadableState`."""
    if any(row.status == "running" for row in tx.all(_ACTIVE_RUNS, thread_id=thread_id)):
        return
    refs = [ref for row in tx.all(_CHECKPOINTS, thread_id=thread_id) for ref in parts.refs_in(row.checkpoint)]
    refs += [parts.unpack(row.value) for row in tx.all(_WRITES, thread_id=thread_id)]
    used = _descend(tx, thread_id, refs, {}, _nothing, leaves=False)
    unused = {row.name for row in tx.all(_ALL_NAMES, thread_id=thread_id)} - used
    if unused:
        statement = _DROP if tx.dialect == "sqlite" else _DROP.replace("?", "%s")
        tx.sql(statement, [(tx.tenant, thread_id, name) for name in sorted(unused)])


def _nothing(names: Set[bytes]) -> Loaded:
    return {}


def _descend(
    tx: Tx, thread_id: str, refs: Iterable[Ref], loaded: Loaded, recall: Recall, *, leaves: bool
) -> set[bytes]:
    """Follows the values down to their leaves. Returns the names of all their parts. Raises `UnreadableState` if a node
    is missing or damaged."""
    levels = dict[int, set[bytes]]()
    for ref in refs:
        if not isinstance(ref, Inline):
            for depth, names in enumerate(ref.levels if isinstance(ref, Listed) else ((ref.name,),)):
                levels.setdefault(depth, set()).update(names)
    seen = set[bytes]()
    for depth in range(max(levels, default=0), -1, -1):
        wanted = levels.get(depth, set())
        seen |= wanted
        if depth or leaves:
            _fetch(tx, thread_id, wanted - loaded.keys(), loaded, recall)
        if depth:
            if not wanted <= loaded.keys():
                raise parts.missing()
            nodes = (loaded[name] for name in wanted)
            levels.setdefault(depth - 1, set()).update(chain.from_iterable(map(parts.below, nodes)))
    return seen


def _fetch(tx: Tx, thread_id: str, names: set[bytes], loaded: Loaded, recall: Recall) -> None:
    loaded |= (recalled := recall(names))
    for row in _rows(tx, thread_id, sorted(names - recalled.keys())):
        loaded[row[0]] = Part(*row)


def _rows(tx: Tx, thread_id: str, names: Sequence[bytes]) -> Iterator[tuple[bytes, str, bytes]]:
    if tx.dialect != "sqlite":
        if names:
            yield from map(tuple, tx.sql(_NAMED.replace("?", "%s") + "= ANY(%s)", (tx.tenant, thread_id, list(names))))
        return
    for start in range(0, len(names), _AT_ONCE):  # padded, so that SQLite prepares few statements
        some = names[start : start + _AT_ONCE]
        width = 1 << (len(some) - 1).bit_length()
        padded = (*some, *[some[-1]] * (width - len(some)))
        yield from map(tuple, tx.sql(_in(width), (tx.tenant, thread_id, *padded)))


@lru_cache(maxsize=16)
def _in(width: int) -> str:
    return f"{_NAMED}IN ({', '.join('?' * width)})"
