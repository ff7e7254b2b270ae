"""A thread's size on disk, its copies, and the removal of its history before the latest state."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any, NamedTuple

import orjson
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    LargeBinary,
    Table,
    Text,
    bindparam,
    cast,
    delete,
    func,
    insert,
    null,
    select,
    tuple_,
    update,
)

from assent.errors import TooLarge
from assent.kernel.quotas import quotas
from assent.kernel.store.tables import (
    TENANT,
    answers,
    checkpoint_parts,
    checkpoint_writes,
    checkpoints,
    frames,
    runs,
    thread_values,
    threads,
)
from assent.kernel.store.transaction import Tx
from assent.threads.rows.state import parts

_THREAD: BindParameter[str] = bindparam("this")
_LARGEST_COPY = 64 * 1024 * 1024
_DELTAS = "counters_since_delta_snapshot"
_NEWEST = (
    select(checkpoints.c.ns, func.max(checkpoints.c.checkpoint_id))
    .where(checkpoints.c.tenant_id == TENANT, checkpoints.c.thread_id == _THREAD)
    .group_by(checkpoints.c.ns)
)
_METADATA_OF_NEWEST = select(checkpoints.c.metadata).where(
    checkpoints.c.tenant_id == TENANT,
    checkpoints.c.thread_id == _THREAD,
    tuple_(checkpoints.c.ns, checkpoints.c.checkpoint_id).in_(_NEWEST),
)


class Size(NamedTuple):
    rows: int
    bytes: int


def sizes(tx: Tx, thread_id: str) -> dict[str, Size]:
    """Rows and bytes by table."""
    rows = {name: tx.first(_SIZES[name, tx.dialect], this=thread_id) for name in _HEAVY}
    return {name: Size(row.rows, int(row.bytes)) for name, row in rows.items() if row is not None}


def copy_checkpoints(tx: Tx, source: str, target: str) -> None:
    """Copied checkpoints belong to no run of the copy: rolling a run back there must not remove them.

    The copy is one write, which blocks all others on SQLite, so a thread that is too large is refused."""
    by_table = sizes(tx, source)
    size = sum(by_table[name].bytes for name in _COPIES)
    if size > _LARGEST_COPY:
        raise TooLarge(
            f"the thread's history has {size} bytes; at most {_LARGEST_COPY} are copied",
            hint="prune it first: POST /threads/prune with the strategy keep_latest",
        )
    quotas.require_bytes(tx, size)
    for table in (checkpoints, checkpoint_writes, checkpoint_parts):
        tx.change(_COPIES[table.name], this=source, target=target)


def keep_latest(tx: Tx, thread_id: str) -> bool:
    """Removes every checkpoint but the newest of each namespace. False where the newest depend on earlier ones.

    Channels that store only differences cannot be read without the earlier checkpoints.
    """
    newest = tx.all(_METADATA_OF_NEWEST, this=thread_id)
    if any(orjson.loads(row.metadata).get(_DELTAS) for row in newest):
        return False
    for statement in _THIN_OUT:
        tx.change(statement, this=thread_id)
    parts.sweep(tx, thread_id)
    return True


def _copy(table: Table, replaced: dict[str, ColumnElement[Any]]) -> Any:
    columns = list(table.c)
    source = select(*(replaced.get(column.name, column) for column in columns)).where(
        table.c.tenant_id == TENANT, table.c.thread_id == _THREAD
    )
    return insert(table).from_select([column.name for column in columns], source)


_TARGET = bindparam("target", type_=threads.c.thread_id.type)
_COPIES = {
    "checkpoints": _copy(checkpoints, {"thread_id": _TARGET, "run_id": null()}),
    "checkpoint_writes": _copy(checkpoint_writes, {"thread_id": _TARGET}),
    "checkpoint_parts": _copy(checkpoint_parts, {"thread_id": _TARGET}),
}
_THIN_OUT = [
    *(
        delete(table).where(
            table.c.tenant_id == TENANT,
            table.c.thread_id == _THREAD,
            tuple_(table.c.ns, table.c.checkpoint_id).not_in(_NEWEST),
        )
        for table in (checkpoint_writes, checkpoints)
    ),
    update(checkpoints)
    .where(checkpoints.c.tenant_id == TENANT, checkpoints.c.thread_id == _THREAD)
    .values(parent_id=None),
]


def _sized(column: ColumnElement[Any], dialect: str) -> ColumnElement[int]:
    if dialect == "sqlite":
        return func.length(cast(column, LargeBinary))
    return func.octet_length(column if isinstance(column.type, LargeBinary) else cast(column, Text))


def _size(name: str, dialect: str) -> Any:
    table, heavy = _HEAVY[name]
    mine = table.c.run_id.in_(_RUNS) if table is frames else table.c.thread_id == _THREAD
    each = [func.coalesce(_sized(table.c[column], dialect), 0) for column in heavy]
    whole = func.coalesce(func.sum(reduce(operator.add, each)), 0)
    return (
        select(func.count().label("rows"), whole.label("bytes"))
        .select_from(table)
        .where(table.c.tenant_id == TENANT, mine)
    )


_RUNS = select(runs.c.run_id).where(runs.c.tenant_id == TENANT, runs.c.thread_id == _THREAD)
_HEAVY: dict[str, tuple[Table, tuple[str, ...]]] = {
    "threads": (threads, ("metadata", "config", "values", "interrupts", "error", "next")),
    "thread_values": (thread_values, ("text",)),
    "runs": (runs, ("metadata", "kwargs", "error")),
    "answers": (answers, ("value",)),
    "frames": (frames, ("data",)),
    "checkpoints": (checkpoints, ("checkpoint", "metadata")),
    "checkpoint_writes": (checkpoint_writes, ("value",)),
    "checkpoint_parts": (checkpoint_parts, ("data",)),
}
_SIZES = {(name, dialect): _size(name, dialect) for name in _HEAVY for dialect in ("sqlite", "postgresql")}
