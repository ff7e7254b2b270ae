"""Answers by Idempotency-Key: a repeated key returns the same answer, and the request runs once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, select, update

from assent.errors import KeyReused
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.kernel.store.tables import TENANT, requests
from assent.kernel.store.transaction import Tx

_THIS = (
    requests.c.tenant_id == TENANT,
    requests.c.actor == bindparam("whose"),
    requests.c.key == bindparam("named"),
)
_GIVEN = select(requests).where(*_THIS)
_HOLD = _GIVEN.with_for_update()
_SET_ANSWER = update(requests).where(*_THIS).values(answer=bindparam("given"))
_PRUNE = delete(requests).where(requests.c.at < bindparam("before"))


def once(tx: Tx, actor: str, key: str | None, request: Json, act: Callable[[Tx], Json]) -> Json:
    """Runs `act`, unless the caller has used this key already: then returns the earlier answer. A concurrent request
    with the same key waits for the first."""
    if key is None:
        return act(tx)
    body_hash = canonical.digest(list(request) if isinstance(request, tuple) else request)
    fresh = tx.insert_new(requests, actor=actor, key=key, body_hash=body_hash, answer={}, at=tx.now())
    if not fresh:
        return _answered(tx, actor, key, body_hash)
    answer = act(tx)
    tx.change(_SET_ANSWER, whose=actor, named=key, given=answer)
    return answer


def hold(tx: Tx, actor: str, name: str) -> None:
    """Locks a name: concurrent transactions wait here for the first. No header can contain this key."""
    key = f"\n{name}"
    if not tx.insert_new(requests, actor=actor, key=key, body_hash="", answer={}, at=tx.now()):
        tx.first(_HOLD, whose=actor, named=key)


def prune(tx: Tx, before: datetime) -> int:
    """Needs a transaction across tenants."""
    return tx.change(_PRUNE, before=before)


def _answered(tx: Tx, actor: str, key: str, body_hash: str) -> Any:
    row = tx.first(_GIVEN, whose=actor, named=key)
    if row is None or row.body_hash != body_hash:
        raise KeyReused()
    return row.answer
