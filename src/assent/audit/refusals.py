"""Records refused attempts to bypass a person in the timeline, although nothing else was changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from assent.errors import AssentError, Forbidden, ThreadWaits
from assent.identity.model.access import Principal
from assent.kernel import events
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx

_KIND = "item.attempt_refused"
_ONCE_IN = timedelta(minutes=1)
"""At most one event per caller and item in this time."""


@asynccontextmanager
async def noted(store: Store, caller: Principal) -> AsyncIterator[None]:
    """Records an attempt that is refused inside, because a person has to decide, on the items concerned."""
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
