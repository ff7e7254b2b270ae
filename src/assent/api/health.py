"""`GET /ok`: whether the server answers and, when asked, whether its database does."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from assent.http.routing import router
from assent.ports import Store


def routes(store: Store) -> APIRouter:
    api = router("", "system")

    @api.head("/ok", include_in_schema=False)
    @api.get("/ok")
    async def ok(check_db: bool = False) -> dict[str, Any]:
        if check_db:
            await store.read(None, lambda tx: tx.sql("SELECT 1").all())
        return {"ok": True, "services": {}}

    return api
