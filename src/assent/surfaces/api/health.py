"""`GET /ok`: whether the server answers and, with `check_db`, whether its database does.

Concurrent requests share one query.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter

from assent.kernel.store.ports import Store
from assent.surfaces.http.public import public
from assent.surfaces.http.routing import router


class Probe:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._looking: asyncio.Task[None] | None = None

    async def answers(self) -> None:
        """Raises if the database does not answer."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        await asyncio.shield(self._looking)

    async def _look(self) -> None:
        await self._store.read(None, lambda tx: tx.sql("SELECT 1").all())


def routes(store: Store) -> APIRouter:
    api, database = router("", "system"), Probe(store)

    @api.head("/ok", include_in_schema=False)
    @api.get("/ok")
    @public
    async def ok(check_db: bool = False) -> dict[str, Any]:
        if check_db:
            await database.answers()
        return {"ok": True, "services": {}}

    return api
