"""REST: the inbox. What waits for people, what they decide, and what comes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from assent.api.schemas import Body, Cursor, Key, Limit, Moment
from assent.domain.canonical import Json
from assent.domain.items import LONGEST_GRACE
from assent.domain.questions import Verb, Verdict
from assent.errors import Invalid
from assent.http.authentication import Caller
from assent.http.routing import router
from assent.services.deciding import Proposal
from assent.services.inbox import MOST_AT_ONCE, Inbox, Named
from assent.services.live import Live
from assent.services.requesting import Request
from assent.services.watchers import Change

Via = Annotated[Literal["rest", "cli"], Header(alias="Assent-Via", description="the surface, for the timeline")]
Text = Annotated[str, Field(max_length=20_000)]
Short = Annotated[str, Field(min_length=1, max_length=500)]
View = dict[str, Any]


class VerdictIn(Body):
    key: Short = Field(description="which action, as the item names it")
    verb: Verb
    args: Json = Field(None, description="the edited arguments, the content of a form, or an answer that is not a text")
    name: Short | None = Field(None, description="another tool to call instead, where that is allowed")
    message: Text | None = Field(None, description="the text of an answer, or the reason of a rejection")


class DecisionIn(Body):
    """One verdict per action, or one `verb` for all of them."""

    revision: int
    hash: str
    actions: list[VerdictIn] = Field([], max_length=500)
    verb: Verb | None = None
    message: Text | None = None
    notes: Text | None = None
    grace_seconds: float = Field(0, ge=0, le=LONGEST_GRACE.total_seconds(), description="how long it can be taken back")

    def proposal(self, via: str) -> Proposal:
        return Proposal(
            self.revision,
            self.hash,
            tuple(Verdict(one.key, one.verb, one.args, one.name, one.message) for one in self.actions),
            self.verb,
            self.message,
            self.notes,
            timedelta(seconds=self.grace_seconds),
            via,
        )


class RevisionRequestIn(Body):
    revision: int
    hash: str
    notes: Text
    grace_seconds: float = Field(0, ge=0, le=LONGEST_GRACE.total_seconds())


class ActionIn(Body):
    key: Short | None = None
    name: Short
    args: Json = None
    description: Text | None = None
    allowed: list[Verb] | None = Field(
        None, description="approve, edit, reject, respond, ignore; the first three if null"
    )
    schema_: dict[str, Any] | None = Field(None, alias="schema", description="JSON Schema of the edited arguments")

    def given(self) -> dict[str, Any]:
        found = self.model_dump(by_alias=True, exclude_none=True)
        return found | {"args": self.args}


class EntityIn(Body):
    type: Short
    id: Short


class RequestIn(Body):
    type: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_.:-]+$")]
    title: Short
    description: Text | None = None
    payload: Json = None
    actions: list[ActionIn] = Field([], max_length=100)
    recipient: Short | None = None
    entity: EntityIn | None = None
    thread_ids: list[Short] = Field([], max_length=100)
    expires_at: Moment | None = None
    dedupe_key: Short | None = Field(None, description="the same key of the same caller finds the item that is there")
    callback: Short | None = Field(None, description="a URL that is told what was decided, signed")

    def request(self) -> Request:
        return Request(
            self.type,
            self.title,
            self.description,
            self.payload,
            tuple(action.given() for action in self.actions),
            self.recipient,
            self.entity.model_dump() if self.entity else {},
            tuple(self.thread_ids),
            self.expires_at,
            self.dedupe_key,
            self.callback,
        )


class ResubmissionIn(Body):
    """What is not named stays as it was."""

    title: Short | None = None
    description: Text | None = None
    payload: Json = None
    actions: list[ActionIn] | None = Field(None, max_length=100)

    def changes(self) -> dict[str, Json]:
        given = {name: getattr(self, name) for name in ("title", "description", "payload")}
        return given | {"actions": [one.given() for one in self.actions] if self.actions is not None else None}


class NotesIn(Body):
    notes: Text | None = None


class DoubtIn(Body):
    outcome: Literal["done", "run_again", "abandon"]
    notes: Text | None = None
    grant_id: Short | None = Field(None, description="which call, where several are in doubt")


class CommentIn(Body):
    text: Text


class DraftIn(Body):
    draft: Json = None


class SnoozeIn(Body):
    until: Moment | None


class NamedIn(Body):
    id: Short
    revision: int
    hash: str


class BulkIn(Body):
    items: list[NamedIn] = Field(max_length=MOST_AT_ONCE)
    verb: Verb
    message: Text | None = None
    dry_run: bool = False


class Counts(BaseModel):
    pending: int = Field(description="up to 10,000; that number means that many or more")
    resolved: int


class ItemList(BaseModel):
    items: list[View]
    next: str | None
    counts: Counts


class BulkResult(BaseModel):
    id: str
    ok: bool
    status: str | None
    error: dict[str, Any]


class BulkResults(BaseModel):
    results: list[BulkResult]


FilterText = Annotated[str, Query(max_length=500, description="such as `is:pending type:tool older:2h refund`")]


def routes(inbox: Inbox, live: Live) -> APIRouter:
    api = router("/api/inbox", "inbox")
    _look(api, inbox)
    _decide(api, inbox)
    _request(api, inbox)
    _work_together(api, inbox)
    _watch(api, live)
    return api


def _look(api: APIRouter, inbox: Inbox) -> None:
    @api.get("/items")
    async def list_items(
        caller: Caller,
        filter: FilterText = "",
        sort: str = "-created_at",
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> ItemList:
        page = await inbox.list(caller, filter=filter, sort=sort, limit=limit, cursor=cursor)
        return ItemList(items=page.items, next=page.next, counts=Counts(**page.counts))

    @api.get("/items/{item_id}")
    async def get_item(caller: Caller, item_id: str) -> View:
        return await inbox.get(caller, item_id)

    @api.get("/items/{item_id}/revisions")
    async def list_revisions(caller: Caller, item_id: str) -> list[View]:
        return await inbox.revisions(caller, item_id)

    @api.get("/items/{item_id}/timeline")
    async def timeline(caller: Caller, item_id: str) -> list[View]:
        return await inbox.timeline(caller, item_id)

    @api.get("/items/{item_id}/comments")
    async def list_comments(caller: Caller, item_id: str) -> list[View]:
        return await inbox.comments(caller, item_id)


def _decide(api: APIRouter, inbox: Inbox) -> None:
    @api.post("/items/{item_id}/decision")
    async def decide(caller: Caller, item_id: str, body: DecisionIn, key: Key = None, via: Via = "rest") -> View:
        return await inbox.decide(caller, item_id, body.proposal(via), key=key)

    @api.delete("/items/{item_id}/decision")
    async def undo(caller: Caller, item_id: str, key: Key = None) -> View:
        return await inbox.undo(caller, item_id, key=key)

    @api.post("/items/{item_id}/revision-request")
    async def ask_for_revision(caller: Caller, item_id: str, body: RevisionRequestIn, key: Key = None) -> View:
        grace = timedelta(seconds=body.grace_seconds)
        return await inbox.ask_for_revision(
            caller, item_id, revision=body.revision, hash=body.hash, notes=body.notes, grace=grace, key=key
        )

    @api.post("/items/{item_id}/in-doubt")
    async def settle_doubt(caller: Caller, item_id: str, body: DoubtIn, key: Key = None) -> View:
        return await inbox.settle_doubt(
            caller, item_id, body.outcome, notes=body.notes, grant_id=body.grant_id, key=key
        )

    @api.post("/bulk")
    async def bulk(caller: Caller, body: BulkIn, key: Key = None) -> BulkResults:
        chosen = [Named(one.id, one.revision, one.hash) for one in body.items]
        results = await inbox.decide_many(
            caller, chosen, body.verb, message=body.message, dry_run=body.dry_run, key=key
        )
        found = [BulkResult(id=one.id, ok=one.ok, status=one.status, error=dict(one.error)) for one in results]
        return BulkResults(results=found)


def _request(api: APIRouter, inbox: Inbox) -> None:
    @api.post("/items", status_code=201, responses={200: {"description": "the item that has this dedupe_key"}})
    async def create_item(caller: Caller, body: RequestIn, response: Response, key: Key = None) -> View:
        item, fresh = await inbox.create(caller, body.request(), key=key)
        response.status_code = 201 if fresh else 200
        return item

    @api.post("/items/{item_id}/resubmission")
    async def resubmit(caller: Caller, item_id: str, body: ResubmissionIn, key: Key = None) -> View:
        return await inbox.resubmit(caller, item_id, body.changes(), key=key)

    @api.post("/items/{item_id}/cancellation")
    async def cancel(caller: Caller, item_id: str, body: NotesIn, key: Key = None) -> View:
        return await inbox.cancel(caller, item_id, notes=body.notes, key=key)


def _work_together(api: APIRouter, inbox: Inbox) -> None:
    @api.post("/items/{item_id}/comments", status_code=201)
    async def comment(caller: Caller, item_id: str, body: CommentIn, key: Key = None) -> View:
        return await inbox.comment(caller, item_id, body.text, key=key)

    @api.post("/items/{item_id}/reveal")
    async def reveal(caller: Caller, item_id: str) -> list[View]:
        return await inbox.reveal(caller, item_id)

    @api.put("/items/{item_id}/claim")
    async def claim(caller: Caller, item_id: str) -> View:
        return await inbox.claim(caller, item_id)

    @api.delete("/items/{item_id}/claim")
    async def unclaim(caller: Caller, item_id: str) -> View:
        return await inbox.unclaim(caller, item_id)

    @api.put("/items/{item_id}/draft")
    async def save_draft(caller: Caller, item_id: str, body: DraftIn) -> View:
        return await inbox.save_draft(caller, item_id, body.draft)

    @api.put("/items/{item_id}/snooze")
    async def snooze(caller: Caller, item_id: str, body: SnoozeIn) -> View:
        return await inbox.snooze(caller, item_id, body.until)

    @api.put("/items/{item_id}/links/{thread_id}")
    async def link(caller: Caller, item_id: str, thread_id: str) -> View:
        return await inbox.link(caller, item_id, thread_id)

    @api.delete("/items/{item_id}/links/{thread_id}")
    async def unlink(caller: Caller, item_id: str, thread_id: str) -> View:
        return await inbox.unlink(caller, item_id, thread_id)


def _watch(api: APIRouter, live: Live) -> None:
    @api.get("/events", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}})
    async def changes(
        caller: Caller, last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None
    ) -> StreamingResponse:
        after = _number(last_event_id)
        return StreamingResponse(_sent(live.follow(caller, after=after)), media_type="text/event-stream", headers=_SSE)


_SSE = {"cache-control": "no-store", "x-accel-buffering": "no"}


def _number(last_event_id: str | None) -> int | None:
    if last_event_id is None:
        return None
    if not last_event_id.isdecimal() or len(last_event_id) > 18:
        raise Invalid("Last-Event-ID is not one that this stream gave out")
    return int(last_event_id)


async def _sent(changes: AsyncIterator[Change | None]) -> AsyncIterator[bytes]:
    yield b": here\n\n"
    async for change in changes:
        if change is None:
            yield b": still here\n\n"
        else:
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (change.seq, change.kind.encode(), orjson.dumps(change.told()))
