"""The LangGraph API's thread states: latest, at a checkpoint, history, update; and our own repair."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field, field_validator

from assent.kernel.limits import MOST_LISTED
from assent.runs.engine.histories import Update
from assent.runs.threads.states import ThreadStates
from assent.surfaces.api.langgraph.routing import router
from assent.surfaces.api.langgraph.schemas import Body, Limit, Object
from assent.surfaces.api.langgraph.thread_views import StateView, UpdatedState, json
from assent.surfaces.http import routing
from assent.surfaces.http.authentication import Caller

Subgraphs = Annotated[bool, Query()]
Select = Annotated[
    list[str] | None,
    Query(max_length=MOST_LISTED, description="fields of the state; `values.<key>` is one key of the values"),
]
CheckpointId = Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{0,64}$")]


class Checkpoint(Body):
    """A checkpoint: without an id the latest, without a namespace the root graph's."""

    checkpoint_id: CheckpointId | None = None
    checkpoint_ns: str | None = Field(None, max_length=4000, pattern=r"^[^\x00]*$")
    checkpoint_map: Object | None = None

    def address(self) -> Object:
        return self.model_dump(exclude_none=True)


class StateRequest(Body):
    checkpoint: Checkpoint
    subgraphs: bool = False
    select: list[str] | None = Field(None, max_length=MOST_LISTED)


class StateUpdate(Body):
    values: Object | list[Any] | None = None
    as_node: str | None = None
    checkpoint: Checkpoint | None = None
    checkpoint_id: CheckpointId | None = Field(None, description="the older way to name a checkpoint")

    def address(self) -> Object:
        return self.checkpoint.address() if self.checkpoint else {"checkpoint_id": self.checkpoint_id}


class HistoryRequest(Body):
    limit: Limit = 1
    before: CheckpointId | Checkpoint | None = None
    metadata: Object | None = None
    checkpoint: Checkpoint | None = None
    select: list[str] | None = Field(None, max_length=MOST_LISTED)

    @field_validator("before", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        """The JavaScript SDK sends a whole config."""
        return value["configurable"] if isinstance(value, dict) and "configurable" in value else value

    @property
    def until(self) -> str | None:
        return self.before.checkpoint_id if isinstance(self.before, Checkpoint) else self.before


class Repaired(BaseModel):
    thread_id: str
    checkpoint: Object = Field(description="the thread's present checkpoint; a run without input continues from it")


def routes(states: ThreadStates) -> APIRouter:
    api = router("/threads/{thread_id}", "threads")

    @api.get("/state", responses={200: {"model": StateView}})
    async def get_state(
        caller: Caller, thread_id: UUID, subgraphs: Subgraphs = False, select: Select = None
    ) -> Response:
        return await json(await states.read(caller, str(thread_id), subgraphs=subgraphs, select=select))

    @api.get("/state/{checkpoint_id}", responses={200: {"model": StateView}})
    async def get_state_at(
        caller: Caller,
        thread_id: UUID,
        checkpoint_id: CheckpointId,
        subgraphs: Subgraphs = False,
        select: Select = None,
    ) -> Response:
        at = {"checkpoint_id": checkpoint_id}
        return await json(await states.read(caller, str(thread_id), at=at, subgraphs=subgraphs, select=select))

    @api.post("/state/checkpoint", responses={200: {"model": StateView}})
    async def get_state_at_checkpoint(caller: Caller, thread_id: UUID, body: StateRequest) -> Response:
        at = body.checkpoint.address()
        return await json(
            await states.read(caller, str(thread_id), at=at, subgraphs=body.subgraphs, select=body.select)
        )

    @api.post("/state")
    async def update_state(caller: Caller, thread_id: UUID, body: StateUpdate) -> UpdatedState:
        new = await states.update(caller, str(thread_id), Update(body.values, body.as_node), at=body.address())
        return UpdatedState(checkpoint=new, configurable=new, checkpoint_id=new.get("checkpoint_id"))

    @api.get("/history", responses={200: {"model": list[StateView]}})
    async def get_history(
        caller: Caller,
        thread_id: UUID,
        limit: Limit = 1,
        before: CheckpointId | None = None,
        select: Select = None,
    ) -> Response:
        return await json(await states.history(caller, str(thread_id), limit=limit, before=before, select=select))

    @api.post("/history", responses={200: {"model": list[StateView]}})
    async def search_history(caller: Caller, thread_id: UUID, body: HistoryRequest) -> Response:
        past = await states.history(
            caller,
            str(thread_id),
            limit=body.limit,
            before=body.until,
            metadata=body.metadata,
            of=body.checkpoint.address() if body.checkpoint else None,
            select=body.select,
        )
        return await json(past)

    return api


def repair_routes(states: ThreadStates) -> APIRouter:
    api = routing.router("/api/threads", "threads")

    @api.post("/{thread_id}/repair")
    async def repair_thread(caller: Caller, thread_id: UUID) -> Repaired:
        """Repairs a thread that keeps failing because a wrong answer was stored with its last step."""
        return Repaired(thread_id=str(thread_id), checkpoint=await states.repair(caller, str(thread_id)))

    return api
