"""The LangGraph API's threads: create, search, change, copy, prune, delete. Their states are in `thread_states`."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response
from pydantic import Field

from assent.kernel import extracts
from assent.kernel.limits import MOST_LISTED
from assent.runs.engine.histories import Update
from assent.runs.threads.threads import Threads
from assent.surfaces.api.langgraph import thread_states
from assent.surfaces.api.langgraph.routing import router
from assent.surfaces.api.langgraph.schemas import Body, Limit, Object, Offset, SortOrder
from assent.surfaces.api.langgraph.thread_views import (
    FoundThread,
    Pruned,
    SelectField,
    StorageView,
    ThreadView,
    json,
    search_result_json,
    storage_json,
    thread_json,
)
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import add
from assent.threads.model.threads import Lifetime, SortBy, Thinning, ThreadStatus, Visibility
from assent.threads.model.threads import Query as ThreadQuery

Id = Annotated[UUID, Field(strict=False)]
Status = Annotated[ThreadStatus, Field(strict=False)]
Strategy = Annotated[Thinning, Field(strict=False)]
Order = Annotated[SortBy, Field(strict=False)]
Visible = Annotated[Visibility, Field(strict=False)]
IfExists = Literal["raise", "do_nothing"]

_LONGEST_MINUTES = 100 * 366 * 24 * 60


class Ttl(Body):
    ttl: float = Field(gt=0, le=_LONGEST_MINUTES, allow_inf_nan=False, description="minutes from now")
    strategy: Strategy = Thinning.DELETE

    def lifetime(self) -> Lifetime:
        return Lifetime(self.ttl, self.strategy)


class StateChange(Body):
    values: Any = None
    command: Object | None = None
    as_node: str


class Superstep(Body):
    updates: list[StateChange] = Field(min_length=1, max_length=MOST_LISTED)


class ThreadRequest(Body):
    thread_id: Id | None = None
    metadata: Object | None = None
    if_exists: IfExists = "raise"
    ttl: Ttl | None = None
    supersteps: list[Superstep] | None = Field(None, max_length=MOST_LISTED)
    visibility: Visible | None = Field(None, description="which programs may read and run it besides its owner")

    def past(self) -> list[list[Update]]:
        return [
            [Update(change.values, change.as_node, change.command) for change in step.updates]
            for step in self.supersteps or ()
        ]


class ThreadChange(Body):
    metadata: Object | None = None
    ttl: Ttl | None = None
    visibility: Visible | None = Field(None, description="which programs may read and run it besides its owner")


class Filter(Body):
    ids: list[Id] | None = Field(None, max_length=1000)
    metadata: Object | None = None
    values: Object | None = None
    status: Status | None = None

    def query(self, **page: Any) -> ThreadQuery:
        ids = [str(thread_id) for thread_id in self.ids or ()]
        return ThreadQuery(ids, self.metadata or {}, self.values or {}, self.status, **page)


class Search(Filter):
    limit: Limit = 10
    offset: Offset = 0
    sort_by: Order = SortBy.CREATED_AT
    sort_order: SortOrder = "desc"
    select: list[SelectField] | None = Field(None, max_length=MOST_LISTED)
    extract: dict[str, str] | None = Field(
        None, max_length=MOST_LISTED, description="alias → path, such as values.messages[-1].content"
    )

    def page(self) -> ThreadQuery:
        return self.query(
            sort_by=self.sort_by,
            descending=self.sort_order == "desc",
            limit=self.limit,
            offset=self.offset,
        )


class Prune(Body):
    thread_ids: list[Id] = Field(max_length=1000)
    strategy: Strategy = Thinning.DELETE


def routes(threads: Threads) -> APIRouter:
    api = router("/threads", "threads")
    _add_lists(api, threads)
    _add_rows(api, threads)
    _add_storage(api, threads)
    add(api, thread_states.routes(threads.states))
    add(api, thread_states.repair_routes(threads.states))
    return api


def _add_lists(api: APIRouter, threads: Threads) -> None:
    @api.post("", responses={200: {"model": ThreadView}})
    async def create_thread(caller: Caller, body: ThreadRequest) -> Response:
        thread = await threads.create(
            caller,
            thread_id=str(body.thread_id) if body.thread_id else None,
            metadata=body.metadata,
            if_exists=body.if_exists,
            lifetime=body.ttl.lifetime() if body.ttl else None,
            supersteps=body.past(),
            visibility=body.visibility,
        )
        return await json(thread_json(thread))

    @api.post("/search", responses={200: {"model": list[FoundThread]}})
    async def search_threads(caller: Caller, body: Search) -> Response:
        paths = extracts.parse(body.extract or {})
        shown = {*(body.select or ("values", "interrupts")), *(path.root for path in paths.values())}
        matches, more = await threads.search(
            caller, body.page(), values="values" in shown, interrupts="interrupts" in shown
        )
        headers = pagination(body.offset, len(matches), more=more)
        return await json([search_result_json(thread, body.select, paths) for thread in matches], headers=headers)

    @api.post("/count")
    async def count_threads(caller: Caller, body: Filter) -> int:
        return await threads.count(caller, body.query())


def _add_rows(api: APIRouter, threads: Threads) -> None:
    @api.get("/{thread_id}", responses={200: {"model": ThreadView}})
    async def get_thread(
        caller: Caller, thread_id: UUID, include: Annotated[str, Query(description="`ttl`")] = ""
    ) -> Response:
        thread = await threads.get(caller, str(thread_id))
        return await json(thread_json(thread, ttl="ttl" in include.split(",")))

    @api.patch("/{thread_id}", responses={200: {"model": ThreadView}, 204: {"description": "return=minimal"}})
    async def change_thread(
        caller: Caller, thread_id: UUID, body: ThreadChange, prefer: Annotated[str, Header()] = ""
    ) -> Response:
        minimal = "return=minimal" in prefer.replace(" ", "")
        lifetime = body.ttl.lifetime() if body.ttl else None
        thread = await threads.change(
            caller,
            str(thread_id),
            metadata=body.metadata,
            lifetime=lifetime,
            visibility=body.visibility,
            shown=not minimal,
        )
        return Response(status_code=204) if minimal else await json(thread_json(thread))

    @api.delete("/{thread_id}", status_code=204)
    async def delete_thread(caller: Caller, thread_id: UUID) -> None:
        await threads.delete(caller, str(thread_id))


def _add_storage(api: APIRouter, threads: Threads) -> None:
    @api.post("/prune")
    async def prune_threads(caller: Caller, body: Prune) -> Pruned:
        ids = [str(thread_id) for thread_id in body.thread_ids]
        return Pruned(pruned_count=await threads.prune(caller, ids, body.strategy))

    @api.post("/{thread_id}/copy", responses={200: {"model": ThreadView}})
    async def copy_thread(caller: Caller, thread_id: UUID) -> Response:
        return await json(thread_json(await threads.copy(caller, str(thread_id))))

    @api.get("/{thread_id}/storage", responses={200: {"model": StorageView}})
    async def get_thread_storage(caller: Caller, thread_id: UUID) -> Response:
        sizes = await threads.storage(caller, str(thread_id))
        return await json(storage_json(str(thread_id), sizes))


def pagination(offset: int, shown: int, *, more: bool) -> dict[str, str]:
    """`Total` is a lower bound if there are more: it shows that there are, without a count."""
    following = offset + shown
    if not more:
        return {"X-Pagination-Total": str(following)}
    return {"X-Pagination-Next": str(following), "X-Pagination-Total": str(following + 1)}
