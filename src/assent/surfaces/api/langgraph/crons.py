"""The LangGraph API's crons: runs that start by a schedule."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Request, Response
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from typing_extensions import TypedDict

from assent.errors import Invalid
from assent.identity.model.access import Principal
from assent.kernel.ids import as_uuid
from assent.kernel.limits import MOST_LISTED
from assent.review.model.secrets import MASK, SECRET_NAMES
from assent.runs.crons.crons import Crons, Wanted
from assent.surfaces.api.langgraph.routing import router
from assent.surfaces.api.langgraph.runbody import Mode, Nodes
from assent.surfaces.api.langgraph.schemas import (
    Body,
    Config,
    Limit,
    Object,
    Offset,
    SortOrder,
    Timestamp,
    page_headers,
)
from assent.surfaces.api.langgraph.thread_views import json
from assent.surfaces.http.authentication import Caller
from assent.threads.model.crons import Completion, Cron
from assent.threads.model.runs import Strategy
from assent.threads.rows.crons import Query, SortBy

CronField = Literal[
    "cron_id",
    "assistant_id",
    "thread_id",
    "on_run_completed",
    "end_time",
    "schedule",
    "timezone",
    "created_at",
    "updated_at",
    "user_id",
    "payload",
    "next_run_date",
    "metadata",
    "enabled",
    "owner",
    "last_run_id",
    "last_run_date",
    "missed",
    "problem",
]
_FIELDS: tuple[CronField, ...] = get_args(CronField)
_DATA = frozenset({"input", "config", "context", "webhook", "metadata"})
_OF_CRON = ("schedule", "timezone", "end_time", "enabled", "on_run_completed")


def _moment(value: Any) -> Any:
    """A text in ISO 8601; null stays null."""
    if value is None or isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise ValueError("not a text in ISO 8601")
    return datetime.fromisoformat(value)


def _in_utc(value: datetime) -> datetime:
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise ValueError("beyond the years 1 to 9999") from None


Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    AfterValidator(_in_utc),
    PlainSerializer(datetime.isoformat, return_type=str),
]
Modes = Mode | Annotated[list[Mode], Field(max_length=MOST_LISTED)]


class CronChange(BaseModel):
    """Fields that are not listed are kept in the payload and have no effect, as on LangGraph's server. Null is the same
    as absent, but for `end_time`."""

    model_config = ConfigDict(strict=True, extra="ignore")

    schedule: str | None = Field(None, description="five fields, in the time zone; a sixth one is seconds")
    timezone: str | None = Field(None, description="an IANA name; UTC by default")
    end_time: Moment | None = None
    enabled: bool | None = None
    on_run_completed: Annotated[Completion, Field(strict=False)] | None = Field(
        None, description="of a cron without a thread: what happens with the thread of each run"
    )
    input: Any = None
    metadata: Object | None = None
    config: Config | None = None
    context: Object | None = None
    webhook: str | None = Field(None, max_length=2000)
    interrupt_before: Nodes = None
    interrupt_after: Nodes = None
    stream_mode: Modes | None = None
    stream_subgraphs: bool | None = None
    stream_resumable: bool | None = None
    durability: Literal["sync", "async", "exit"] | None = None
    checkpoint_during: bool | None = None
    multitask_strategy: Annotated[Strategy, Field(strict=False)] | None = None

    def wanted(self, sent: Object) -> Wanted:
        given = {name: getattr(self, name) for name in _OF_CRON if name in self.model_fields_set}
        payload = {name: value for name, value in sent.items() if value is not None or name == "end_time"}
        return Wanted(given=given, payload=payload, metadata=self.metadata)


class NewCron(CronChange):
    assistant_id: str = Field(min_length=1, max_length=200)
    schedule: str
    enabled: bool = True


class CronFilter(Body):
    assistant_id: str | None = None
    thread_id: str | None = None
    enabled: bool | None = None
    metadata: Object = Field(default_factory=dict, description="contained in the cron's metadata, at any depth")

    def to_domain(self) -> Query:
        _require_uuid("assistant", self.assistant_id)
        _require_uuid("thread", self.thread_id)
        return Query(self.assistant_id, self.thread_id, self.enabled, metadata=self.metadata)


class CronSearch(CronFilter):
    limit: Limit = 10
    offset: Offset = 0
    sort_by: SortBy = "created_at"
    sort_order: SortOrder = "desc"
    select: list[CronField] | None = Field(None, max_length=MOST_LISTED)


class CronView(TypedDict, total=False):
    """A cron with all fields, or with the selected ones."""

    cron_id: str
    assistant_id: str
    thread_id: str | None
    user_id: str | None
    on_run_completed: str | None
    schedule: str
    timezone: str | None
    end_time: Timestamp | None
    enabled: bool
    payload: Object
    metadata: Object
    next_run_date: Timestamp | None
    created_at: Timestamp
    updated_at: Timestamp
    owner: str
    last_run_id: str | None
    last_run_date: Timestamp | None
    missed: int
    problem: str | None


def routes(crons: Crons) -> APIRouter:
    """Registered before the routes of runs, which have the same shape."""
    api = router("", "crons")
    _add_lists(api, crons)
    _add_rows(api, crons)
    return api


def _add_lists(api: APIRouter, crons: Crons) -> None:
    @api.post("/runs/crons", response_model=CronView)
    async def create_cron(caller: Caller, request: Request, body: NewCron) -> Response:
        """Every due time starts a run with a thread of its own."""
        cron = await crons.create(caller, body.assistant_id, body.wanted(await request.json()))
        return await json(_view(caller, cron))

    @api.post("/threads/{thread_id}/runs/crons", response_model=CronView)
    async def create_thread_cron(caller: Caller, thread_id: str, request: Request, body: NewCron) -> Response:
        """Every due time starts a run on this thread."""
        _require_uuid("thread", thread_id)
        wanted = body.wanted(await request.json())
        return await json(_view(caller, await crons.create(caller, body.assistant_id, wanted, thread_id=thread_id)))

    @api.post("/runs/crons/search", response_model=list[CronView])
    async def search_crons(caller: Caller, body: CronSearch) -> Response:
        matches, total = await crons.search(
            caller,
            body.to_domain(),
            sort_by=body.sort_by,
            descending=body.sort_order == "desc",
            limit=body.limit,
            offset=body.offset,
        )
        headers = page_headers(offset=body.offset, shown=len(matches), total=total)
        return await json([_view(caller, cron, body.select or _FIELDS) for cron in matches], headers)

    @api.post("/runs/crons/count")
    async def count_crons(caller: Caller, body: CronFilter) -> int:
        return await crons.count(caller, body.to_domain())


def _add_rows(api: APIRouter, crons: Crons) -> None:
    @api.get("/runs/crons/{cron_id}", response_model=CronView)
    async def get_cron(caller: Caller, cron_id: str) -> Response:
        return await json(_view(caller, await crons.get(caller, cron_id)))

    @api.patch("/runs/crons/{cron_id}", response_model=CronView)
    async def change_cron(caller: Caller, cron_id: str, request: Request, body: CronChange) -> Response:
        """Fields that are absent stay. `end_time: null` removes the end."""
        return await json(_view(caller, await crons.update(caller, cron_id, body.wanted(await request.json()))))

    @api.delete("/runs/crons/{cron_id}", status_code=204)
    async def delete_cron(caller: Caller, cron_id: str) -> None:
        await crons.delete(caller, cron_id)


def _require_uuid(name: str, id: str | None) -> None:
    if id is not None and as_uuid(id) is None:
        raise Invalid(f"Invalid {name} ID: must be a UUID")


def _view(caller: Principal, cron: Cron, select: tuple[CronField, ...] | list[CronField] = _FIELDS) -> dict[str, Any]:
    owns = caller.actor == cron.owner
    whole = {
        "cron_id": cron.id,
        "assistant_id": cron.assistant_id,
        "thread_id": cron.thread_id,
        "user_id": cron.mandate["id"],
        "on_run_completed": cron.on_run_completed,
        "schedule": cron.schedule,
        "timezone": cron.timezone,
        "end_time": cron.end_time,
        "enabled": cron.enabled,
        "payload": cron.payload if owns else _covered(cron.payload),
        "metadata": cron.metadata if owns else SECRET_NAMES.masked(cron.metadata),
        "next_run_date": cron.next_run_at,
        "created_at": cron.created_at,
        "updated_at": cron.updated_at,
        "owner": cron.owner,
        "last_run_id": cron.last_run_id,
        "last_run_date": cron.last_due_at,
        "missed": cron.missed,
        "problem": cron.problem,
    }
    return {name: whole[name] for name in select}


def _covered(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload for everyone but the owner: the data of its runs may be secret."""
    return {name: MASK if name in _DATA and value is not None else value for name, value in payload.items()}
