"""Attempts to get past a person leave a trace: what was refused is written down although nothing else was changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from assent.domain.access import Principal
from assent.errors import AssentError, Forbidden, ThreadWaits
from assent.ports import Store
from assent.store import events
from assent.store.transaction import Tx

_KIND = "item.attempt_refused"
_ONCE_IN = timedelta(minutes=1)
"""Of the same caller on the same item: who knocks a thousand times must not fill the timeline."""


@asynccontextmanager
async def noted(store: Store, caller: Principal) -> AsyncIterator[None]:
    """Whatever is refused inside because a person has to decide is told by the timeline of the items concerned."""
    try:
        yield
    except (Forbidden, ThreadWaits) as error:
        concerned = error.extra.get("items") or [error.extra["item"]] if {"items", "item"} & error.extra.keys() else []
        if concerned:
            await store.write(caller.tenant, _note, caller, concerned, error)
        raise


def _note(tx: Tx, caller: Principal, item_ids: list[str], error: AssentError) -> None:
    for item_id in item_ids:
        subject = f"item:{item_id}"
        latest = events.search(tx, subject=subject, kind=_KIND, actor=caller.actor, limit=1, cursor=None).items
        if not latest or tx.now() - latest[0][0].at >= _ONCE_IN:
            events.append(tx, caller, _KIND, subject, {"code": error.code, "reason": error.message})
