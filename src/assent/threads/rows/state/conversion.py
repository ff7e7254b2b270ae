"""Checkpoints and writes of earlier releases as rows, and their conversion to parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Table, bindparam, func, select, tuple_, update

from assent.kernel.store.tables import TENANT, checkpoint_writes, checkpoints
from assent.kernel.store.transaction import Tx
from assent.threads.model.old_format import PLAIN, Converted, checkpoint_in_parts, write_in_parts
from assent.threads.model.parts import FORMAT
from assent.threads.rows import threads
from assent.threads.rows.state import parts

Place = tuple[Any, ...]
"""The key of a row."""

TABLES = {"checkpoints": checkpoints, "checkpoint_writes": checkpoint_writes}

_PLACE = ("of_tenant", "thread", "namespace", "checkpoint", "task", "index")
_FIRST: Place = ("", "", "", "", "", 0)
"""Before every place: no tenant has an empty name."""
_CHECKPOINT = (
    checkpoints.c.tenant_id == TENANT,
    checkpoints.c.thread_id == bindparam("thread"),
    checkpoints.c.ns == bindparam("namespace"),
    checkpoints.c.checkpoint_id == bindparam("checkpoint"),
    checkpoints.c.type == PLAIN,
)
_WRITE = (
    checkpoint_writes.c.tenant_id == TENANT,
    checkpoint_writes.c.thread_id == bindparam("thread"),
    checkpoint_writes.c.ns == bindparam("namespace"),
    checkpoint_writes.c.checkpoint_id == bindparam("checkpoint"),
    checkpoint_writes.c.task_id == bindparam("task"),
    checkpoint_writes.c.idx == bindparam("index"),
    checkpoint_writes.c.type == PLAIN,
)
_READ_CHECKPOINT = select(checkpoints.c.checkpoint.label("data")).where(*_CHECKPOINT).with_for_update()
_READ_WRITE = select(checkpoint_writes.c.value.label("data")).where(*_WRITE).with_for_update()
_PUT_CHECKPOINT = (
    update(checkpoints)
    .where(*_CHECKPOINT)
    .values(type=FORMAT, checkpoint=bindparam("converted"), size=bindparam("bytes"))
)
_PUT_WRITE = update(checkpoint_writes).where(*_WRITE).values(type=FORMAT, value=bindparam("converted"))


class _Listing(NamedTuple):
    """The statements that find rows which are not converted."""

    any: Any
    count: Any
    following: Any


def _listing(table: Table) -> _Listing:
    key, old = list(table.primary_key.columns), table.c.type == PLAIN
    after = tuple_(*key) > tuple_(*(bindparam(name) for name in _PLACE[: len(key)]))
    return _Listing(
        select(1).where(old).limit(1),
        select(func.count()).select_from(table).where(old),
        select(*key).where(old, after).order_by(*key).limit(bindparam("limit")),
    )


_LISTINGS = {name: _listing(table) for name, table in TABLES.items()}


def is_needed(tx: Tx) -> bool:
    """Whether a row is not converted. Needs a transaction across tenants."""
    return any(tx.first(listing.any) is not None for listing in _LISTINGS.values())


def count(tx: Tx) -> int:
    """The rows that are not converted. Needs a transaction across tenants."""
    return sum(int(row[0]) for listing in _LISTINGS.values() for row in tx.all(listing.count))


def following(tx: Tx, name: str, after: Place | None, limit: int) -> list[Place]:
    """The keys of the next rows that are not converted. Needs a transaction across tenants."""
    place = dict(zip(_PLACE, after or _FIRST[: len(key_of(name))], strict=False))
    return [tuple(row) for row in tx.all(_LISTINGS[name].following, limit=limit, **place)]


def key_of(name: str) -> list[str]:
    """The names of the columns of a place."""
    return [column.name for column in TABLES[name].primary_key.columns]


def convert(tx: Tx, name: str, places: Sequence[Place]) -> None:
    """Converts these rows of one thread. The lock of the thread keeps its parts from being swept meanwhile."""
    thread_id = places[0][1]
    threads.lock(tx, thread_id, values=False)
    for place in places:
        at = dict(zip(_PLACE[1:], place[1:], strict=False))
        if name == checkpoints.name:
            _convert_checkpoint(tx, at)
        else:
            _convert_write(tx, at)


def _convert_checkpoint(tx: Tx, at: dict[str, Any]) -> None:
    row = tx.first(_READ_CHECKPOINT, **at)
    if row is not None:  # else a run has replaced it
        converted = _stored(tx, at, checkpoint_in_parts(row.data))
        tx.change(_PUT_CHECKPOINT, **at, converted=converted.data, bytes=converted.size)


def _convert_write(tx: Tx, at: dict[str, Any]) -> None:
    row = tx.first(_READ_WRITE, **at)
    if row is not None:
        tx.change(_PUT_WRITE, **at, converted=_stored(tx, at, write_in_parts(row.data)).data)


def _stored(tx: Tx, at: dict[str, Any], converted: Converted) -> Converted:
    parts.add(tx, at["thread"], converted.parts)
    return converted
