"""REST: the gate of an agent's process that runs elsewhere. Its library calls these routes; agents reach their own
records only."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, Field

from assent.gate.elsewhere.desk import GateDesk, Report
from assent.gate.elsewhere.wire import CallSent
from assent.gate.records import Answered, Look, Pending
from assent.kernel.canonical import Json
from assent.review.model.grants import Passage
from assent.surfaces.api.schemas import Body
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import router

_LONGEST_ID = 800


def _indexable(id: str) -> str:
    """Of any script: an index of Postgres counts bytes."""
    if len(id.encode()) > _LONGEST_ID:
        raise ValueError(f"at most {_LONGEST_ID} bytes")
    return id


Id = Annotated[str, Field(min_length=1, max_length=_LONGEST_ID, pattern=r"^[^\x00-\x1f]*$"), AfterValidator(_indexable)]
Ids = Annotated[list[Id], Field(max_length=1_000)]
Named = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f]*$")]


class CallIn(Body):
    deployment: Named = Field("", description="the name that the process gives to its place")
    thread_id: Id = Field(description="the thread of the process")
    call_id: str = Field(min_length=1, max_length=100_000, pattern=r"^[^\x00]*$")
    tool: Id
    args: Json = Field(description="the arguments that a person approves")
    task: Id = Field(description="the namespace of the task that makes the call")
    idempotent: bool = False
    graph: Named = ""
    unedited: Json = Field(None, description="the agent's own arguments, if a person has edited them")

    def sent(self) -> CallSent:
        return CallSent(**self.model_dump())


class LookIn(Body):
    call: CallIn
    positions: Ids = Field(default_factory=list, description="the ids of the task's own questions")


class QuestionIn(Body):
    deployment: Named = ""
    thread_id: Id
    interrupt_id: Id
    value: dict[str, Any] = Field(description="the value of the interrupt")
    response_schema: dict[str, Any] | None = None
    before: Ids = Field(default_factory=list, description="the earlier questions of the task")
    graph: Named = ""

    def pending(self) -> Pending:
        return Pending(**self.model_dump(exclude={"deployment"}))


class TakeIn(Body):
    call: CallIn
    attempt: Id = Field(description="an id of this attempt: a repeated request gets the same grant, another none")
    answered: Ids = Field(default_factory=list, description="the questions of the call itself that have answers")
    anything_answered: bool = False
    recall: bool = Field(False, description="only return the state of a call that may not start any more")
    items: Ids | None = Field(None, description="with recall: only the grants of these items")


class ReportIn(Body):
    kind: Literal["alive", "done", "failed", "paused", "returned", "doubted"]
    attempt: Id | None = Field(None, description="the attempt that makes the call; not needed for a doubt")
    result: Json = Field(None, description="of a call that is done or has failed")
    asked: list[dict[str, Any]] = Field(default_factory=list, max_length=100, description="by a paused call")
    note: Json = Field(None, description="of a paused call: how it continues")
    interrupt_id: Id | None = Field(None, description="in which the gate asks about a call in doubt")

    def report(self) -> Report:
        return Report(**self.model_dump())


class QuestionView(BaseModel):
    value: dict[str, Any] = Field(description="the value to raise")
    response_schema: dict[str, Any] | None = Field(description="of the interrupt; value or schema names the item")


class PassageView(BaseModel):
    passage: Passage
    patience_seconds: float = Field(description="without a heartbeat for so long, the call is in doubt")


def routes(desk: GateDesk) -> APIRouter:
    api = router("/api/gate", "gates elsewhere")

    @api.post("/look")
    async def look(caller: Caller, body: LookIn) -> Look:
        """The policy's judgement of a call, and the gate's questions about it with their answers."""
        return await desk.look(caller, body.call.sent(), body.positions)

    @api.post("/questions")
    async def ask(caller: Caller, body: QuestionIn) -> QuestionView:
        """Creates or revises the item of a question, before the process raises its interrupt."""
        value, schema = await desk.ask(caller, body.deployment, body.pending())
        return QuestionView(value=value, response_schema=schema)

    @api.post("/grants")
    async def take_grant(caller: Caller, body: TakeIn) -> PassageView:
        """Consumes the grant of a call, before the process makes it."""
        call, attempt = body.call.sent(), body.attempt
        if body.recall:
            passage = await desk.recall(caller, call, attempt, body.items)
        else:
            passage = await desk.take(caller, call, attempt, Answered(frozenset(body.answered), body.anything_answered))
        return PassageView(passage=passage, patience_seconds=desk.patience.total_seconds())

    @api.post("/grants/{grant_id}/reports", status_code=204)
    async def report(caller: Caller, grant_id: str, body: ReportIn) -> None:
        """A heartbeat of the attempt that makes the call, or what has become of the call."""
        await desk.report(caller, grant_id, body.report())

    return api
