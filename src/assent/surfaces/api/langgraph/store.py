"""The LangGraph API's store: the items that graphs see as their long-term memory."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from assent.errors import BadRequest
from assent.runs.memory.items import StoreItems
from assent.surfaces.api.langgraph.routing import router
from assent.surfaces.api.langgraph.schemas import Body, Object, Offset, Timestamp
from assent.surfaces.api.langgraph.thread_views import json
from assent.surfaces.http.authentication import Caller
from assent.threads.rows.memory.items import Memory

MOST_LABELS = 100
MOST_ITEMS = 100_000
_DEFAULT_ITEMS = 10

Labels = Annotated[list[str], Field(max_length=MOST_LABELS)]


class NewItem(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    namespace: Labels
    key: str
    value: Object
    index: Literal[False] | Labels | None = Field(
        None, description="the fields to find it by; false: none; null: those of store.index"
    )
    ttl: float | None = Field(None, description="minutes; null: forever; by default that of store.ttl")


class ItemKey(Body):
    namespace: Labels = Field(default_factory=list)
    key: str


class ItemSearch(Body):
    namespace_prefix: Labels = Field(default_factory=list)
    filter: Object | None = None
    limit: int = Field(_DEFAULT_ITEMS, ge=0, le=MOST_ITEMS)
    offset: Offset = 0
    query: str | None = Field(None, description="finds the most similar items, where store.index is configured")
    refresh_ttl: bool | None = None


class NamespaceSearch(Body):
    prefix: Labels | None = None
    suffix: Labels | None = None
    max_depth: int | None = Field(None, ge=0)
    limit: int = Field(100, ge=0, le=MOST_ITEMS)
    offset: Offset = 0


class ItemView(TypedDict):
    namespace: list[str]
    key: str
    value: Object
    created_at: Timestamp
    updated_at: Timestamp


class FoundItem(ItemView):
    score: float | None


class FoundItems(TypedDict):
    items: list[FoundItem]


class FoundNamespaces(TypedDict):
    namespaces: list[list[str]]


def routes(items: StoreItems) -> APIRouter:
    api = router("/store", "store")
    _add_items(api, items)
    _add_searches(api, items)
    return api


def _add_items(api: APIRouter, items: StoreItems) -> None:
    @api.put("/items", status_code=204)
    async def put_item(caller: Caller, body: NewItem) -> None:
        ttl = body.ttl if "ttl" in body.model_fields_set else items.default_ttl
        await items.put(caller, body.namespace, body.key, body.value, index=body.index, ttl=ttl)

    @api.get("/items", response_model=ItemView | None)
    async def get_item(caller: Caller, namespace: str = "", key: str = "", refresh_ttl: str | None = None) -> Response:
        """The labels of the namespace are joined by dots. Null where there is no such item."""
        labels = namespace.split(".")
        if not key:
            raise BadRequest("Key is required")
        refreshes = None if refresh_ttl is None else refresh_ttl.lower() == "true"
        item = await items.get(caller, labels, key, refresh_ttl=refreshes)
        return await json(None if item is None else _view(item))

    @api.delete("/items", status_code=204)
    async def delete_item(caller: Caller, body: ItemKey) -> None:
        await items.delete(caller, body.namespace, body.key)


def _add_searches(api: APIRouter, items: StoreItems) -> None:
    @api.post("/items/search", response_model=FoundItems)
    async def search_items(caller: Caller, body: ItemSearch) -> Response:
        matches = await items.search(
            caller,
            body.namespace_prefix,
            filter=body.filter,
            query=body.query,
            limit=body.limit or _DEFAULT_ITEMS,
            offset=body.offset,
            refresh_ttl=body.refresh_ttl,
        )
        return await json({"items": [{**_view(item), "score": item.score} for item in matches]})

    @api.post("/namespaces")
    async def list_namespaces(caller: Caller, body: NamespaceSearch) -> FoundNamespaces:
        listed = await items.namespaces(
            caller,
            prefix=body.prefix or None,
            suffix=body.suffix or None,
            max_depth=body.max_depth,
            limit=body.limit,
            offset=body.offset,
        )
        return {"namespaces": [list(namespace) for namespace in listed]}


def _view(item: Memory) -> dict[str, Any]:
    return {
        "namespace": list(item.namespace),
        "key": item.key,
        "value": item.value,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }
