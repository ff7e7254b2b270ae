"""Saved views of the inbox, each person's own, in the order in which they were added."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, select, update

from assent.kernel.store.tables import TENANT, inboxes
from assent.kernel.store.transaction import Tx

_OWN = (inboxes.c.tenant_id == TENANT, inboxes.c.owner == bindparam("whose"))
_THIS = (*_OWN, inboxes.c.inbox_id == bindparam("this"))
_ALL = select(inboxes).where(*_OWN).order_by(inboxes.c.position)
_ONE = select(inboxes).where(*_THIS)
_CHANGE = (
    update(inboxes)
    .where(*_THIS)
    .values(
        name=bindparam("new_name"),
        filter=bindparam("new_filter"),
        graph_id=bindparam("new_graph_id"),
        url=bindparam("new_url"),
    )
)
_REMOVE = delete(inboxes).where(*_THIS)
_REMOVE_ALL = delete(inboxes).where(*_OWN)


@dataclass(frozen=True, slots=True)
class SavedInbox:
    """`graph_id` is a graph's name or an assistant's id, at the deployment `url`; a search has neither."""

    id: str
    name: str
    filter: str
    graph_id: str | None
    url: str | None
    position: int
    created_at: datetime


def of_owner(tx: Tx, owner: str) -> list[SavedInbox]:
    return [_inbox(row) for row in tx.all(_ALL, whose=owner)]


def get(tx: Tx, owner: str, inbox_id: str) -> SavedInbox | None:
    row = tx.first(_ONE, whose=owner, this=inbox_id)
    return None if row is None else _inbox(row)


def append(tx: Tx, owner: str, inbox_id: str, **columns: Any) -> None:
    """Appends at the end. A concurrent insert gets the next position."""
    position = max((inbox.position for inbox in of_owner(tx, owner)), default=0) + 1
    while not tx.insert_new(inboxes, inbox_id=inbox_id, owner=owner, position=position, created_at=tx.now(), **columns):
        position += 1


def change(tx: Tx, owner: str, inbox_id: str, **columns: Any) -> bool:
    new = {f"new_{name}": value for name, value in columns.items()}
    return tx.change(_CHANGE, whose=owner, this=inbox_id, **new) == 1


def remove(tx: Tx, owner: str, inbox_id: str) -> bool:
    return tx.change(_REMOVE, whose=owner, this=inbox_id) == 1


def remove_all(tx: Tx, owner: str) -> None:
    tx.change(_REMOVE_ALL, whose=owner)


def _inbox(row: Row[Any]) -> SavedInbox:
    return SavedInbox(row.inbox_id, row.name, row.filter, row.graph_id, row.url, row.position, row.created_at)
