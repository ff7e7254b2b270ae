"""REST: the inbox: pending items, decisions and their results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, model_validator

from assent.errors import Invalid
from assent.identity.model.passkeys import Proof
from assent.kernel.canonical import Json
from assent.review.decisions.decide import Proposal
from assent.review.inbox import MOST_AT_ONCE, MOST_EVENTS, Advice, Inbox, Named
from assent.review.live import Live
from assent.review.model.items import LONGEST_GRACE
from assent.review.model.questions import Verb, Verdict
from assent.review.requests import Request as ItemRequest
from assent.review.watchers import Change
from assent.surfaces.api.schemas import Body, Cursor, Key, Limit, Moment
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.passkey_origins import Relying
from assent.surfaces.http.routing import router

Via = Annotated[Literal["rest", "cli"], Header(alias="Assent-Via", description="the surface, for the timeline")]
Text = Annotated[str, Field(max_length=20_000)]
Short = Annotated[str, Field(min_length=1, max_length=500)]
View = dict[str, Any]
Assertion = Annotated[
    dict[str, Any] | None,
    Field(description="the result of `navigator.credentials.get` for `confirmation`, as JSON, if the item requires it"),
]


class VerdictIn(Body):
    key: Short = Field(description="the key of the action in the item")
    verb: Verb
    args: Json = Field(None, description="the edited arguments, the content of a form, or an answer that is not a text")
    name: Short | None = Field(None, description="another tool to call instead, if that is allowed")
    message: Text | None = Field(None, description="the text of an answer, or the reason of a rejection")


class DecisionIn(Body):
    """One verdict per action, or one `verb` for all of them."""

    revision: int
    hash: str
    actions: list[VerdictIn] = Field([], max_length=500)
    verb: Verb | None = None
    message: Text | None = None
    notes: Text | None = None
    grace_seconds: float = Field(0, ge=0, le=LONGEST_GRACE.total_seconds(), description="how long it can be undone")
    assertion: Assertion = None

    @model_validator(mode="before")
    @classmethod
    def _point_to_actions(cls, body: Any) -> Any:
        """Refuses fields of a single action beside `verb`, a common mistake."""
        if isinstance(body, dict) and (stray := sorted({"args", "name", "key"} & body.keys())):
            raise ValueError(f"{', '.join(stray)} belongs to an action: actions: [{{key, verb, {stray[0]}, …}}]")
        return body

    def proposal(self, via: str) -> Proposal:
        return Proposal(
            self.revision,
            self.hash,
            tuple(
                Verdict(verdict.key, verdict.verb, verdict.args, verdict.name, verdict.message)
                for verdict in self.actions
            ),
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
        None, max_length=100, description="approve, edit, reject, respond, ignore; the first three if null"
    )
    schema_: dict[str, Any] | None = Field(None, alias="schema", description="JSON Schema of the edited arguments")

    def dumped(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True) | {"args": self.args}


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
    dedupe_key: Short | None = Field(None, description="a repeated key of the same caller returns the existing item")
    callback: Short | None = Field(None, description="a URL that receives the decision, signed")

    def request(self) -> ItemRequest:
        return ItemRequest(
            self.type,
            self.title,
            self.description,
            self.payload,
            tuple(action.dumped() for action in self.actions),
            self.recipient,
            self.entity.model_dump() if self.entity else {},
            tuple(self.thread_ids),
            self.expires_at,
            self.dedupe_key,
            self.callback,
        )


class ResubmissionIn(Body):
    """Fields that are left out stay unchanged."""

    title: Short | None = None
    description: Text | None = None
    payload: Json = None
    actions: list[ActionIn] | None = Field(None, max_length=100)

    def changes(self) -> dict[str, Json]:
        fields = {name: getattr(self, name) for name in ("title", "description", "payload")}
        return fields | {"actions": [action.dumped() for action in self.actions] if self.actions is not None else None}


class NotesIn(Body):
    notes: Text | None = None


class DoubtIn(Body):
    outcome: Literal["done", "run_again", "abandon"]
    notes: Text | None = None
    grant_id: Short | None = Field(None, description="the call, if several are in doubt or it ran again")
    assertion: Assertion = None


class CommentIn(Body):
    text: Text


class AdviceIn(Body):
    revision: int
    hash: str
    verb: Verb
    reason: Text


class OwnerIn(Body):
    owner: Short = Field(description="the name or the id of a person who may decide, or `me`")


class PersonView(BaseModel):
    id: str
    name: str
    decides: bool = Field(description="whether the person's role may decide, and so own items")


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
    pending: int = Field(description="up to 10,000; 10,000 means that many or more")
    resolved: int


class ItemList(BaseModel):
    items: list[View]
    next: str | None
    counts: Counts
    facets: dict[str, dict[str, int]] = Field(
        default_factory=dict,
        description="with `facets=true`: the values of kind, risk, agent and graph, each with the number of items, "
        "counted among the newest 2,000",
    )


class BulkResult(BaseModel):
    id: str
    ok: bool
    status: str | None
    error: dict[str, Any]


class BulkResults(BaseModel):
    results: list[BulkResult]


FilterText = Annotated[str, Query(max_length=500, description="such as `is:pending type:tool older:2h refund`")]


def routes(inbox: Inbox, live: Live, relying: Relying | None = None) -> APIRouter:
    api = router("/api/inbox", "inbox")
    _look(api, inbox)
    _decide(api, inbox, relying or Relying())
    _confirm(api, inbox, relying or Relying())
    _decide_many(api, inbox)
    _request(api, inbox)
    _work_together(api, inbox)
    _mark(api, inbox)
    _watch(api, live)
    return api


def _plain_facets(facets: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {name: dict(values) for name, values in facets.items()}


def _look(api: APIRouter, inbox: Inbox) -> None:
    @api.get("/items")
    async def list_items(
        caller: Caller,
        filter: FilterText = "",
        sort: Annotated[str | None, Query(description="-created_at, created_at, deadline or risk")] = None,
        group: Annotated[str | None, Query(description="agent, thread or type: its items follow each other")] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
        arguments: Annotated[bool, Query(description="include the calls and their arguments")] = False,
        facets: Annotated[bool, Query(description="include the values to narrow the list by")] = False,
    ) -> ItemList:
        page = await inbox.list(
            caller,
            filter=filter,
            sort=sort,
            group=group,
            limit=limit,
            cursor=cursor,
            arguments=arguments,
            facets=facets,
        )
        counts = Counts(**page.counts)
        return ItemList(items=page.items, next=page.next, counts=counts, facets=_plain_facets(page.facets))

    @api.get("/items/{item_id}")
    async def get_item(caller: Caller, item_id: str) -> View:
        return await inbox.get(caller, item_id)

    @api.get("/items/{item_id}/revisions")
    async def list_revisions(caller: Caller, item_id: str) -> list[View]:
        return await inbox.revisions(caller, item_id)

    @api.get("/items/{item_id}/timeline")
    async def timeline(
        caller: Caller,
        item_id: str,
        limit: Annotated[int, Query(ge=1, le=MOST_EVENTS)] = MOST_EVENTS,
        before: Annotated[int | None, Query(ge=1, le=2**63 - 1, description="the `seq` of an event")] = None,
    ) -> list[View]:
        """The newest events, or the newest before an event, oldest first. Fewer if they are large."""
        return await inbox.timeline(caller, item_id, limit=limit, before=before)

    @api.get("/items/{item_id}/comments")
    async def list_comments(caller: Caller, item_id: str) -> list[View]:
        return await inbox.comments(caller, item_id)


def _decide(api: APIRouter, inbox: Inbox, relying: Relying) -> None:
    @api.post("/items/{item_id}/decision")
    async def decide(
        request: Request, caller: Caller, item_id: str, body: DecisionIn, key: Key = None, via: Via = "rest"
    ) -> View:
        proof = _proof(relying, request, body.assertion)
        return await inbox.decide(caller, item_id, body.proposal(via), key=key, proof=proof)

    @api.delete("/items/{item_id}/decision")
    async def undo(caller: Caller, item_id: str, key: Key = None) -> View:
        return await inbox.undo(caller, item_id, key=key)

    @api.post("/items/{item_id}/revision-request")
    async def ask_for_revision(
        caller: Caller, item_id: str, body: RevisionRequestIn, key: Key = None, via: Via = "rest"
    ) -> View:
        seen: dict[str, Any] = {"revision": body.revision, "hash": body.hash, "notes": body.notes}
        grace = timedelta(seconds=body.grace_seconds)
        return await inbox.ask_for_revision(caller, item_id, **seen, grace=grace, via=via, key=key)

    @api.post("/items/{item_id}/in-doubt")
    async def settle_doubt(request: Request, caller: Caller, item_id: str, body: DoubtIn, key: Key = None) -> View:
        proof = _proof(relying, request, body.assertion)
        return await inbox.settle_doubt(
            caller, item_id, body.outcome, notes=body.notes, grant_id=body.grant_id, key=key, proof=proof
        )


def _confirm(api: APIRouter, inbox: Inbox, relying: Relying) -> None:
    """Returns the challenge for the caller's passkey; null if no confirmation is required."""

    @api.post("/items/{item_id}/confirmation")
    async def confirmation(request: Request, caller: Caller, item_id: str, body: DecisionIn) -> View | None:
        return await inbox.to_confirm(caller, item_id, body.proposal("rest"), relying.party(request))

    @api.post("/items/{item_id}/in-doubt/confirmation")
    async def doubt_confirmation(request: Request, caller: Caller, item_id: str, body: DoubtIn) -> View | None:
        if body.outcome != "run_again":
            return None
        return await inbox.to_confirm_doubt(caller, item_id, relying.party(request), grant_id=body.grant_id)


def _proof(relying: Relying, request: Request, assertion: dict[str, Any] | None) -> Proof | None:
    return None if assertion is None else Proof(assertion, relying.party(request))


def _decide_many(api: APIRouter, inbox: Inbox) -> None:
    @api.post("/bulk")
    async def bulk(caller: Caller, body: BulkIn, key: Key = None) -> BulkResults:
        chosen = [Named(item.id, item.revision, item.hash) for item in body.items]
        results = await inbox.decide_many(
            caller, chosen, body.verb, message=body.message, dry_run=body.dry_run, key=key
        )
        return BulkResults(
            results=[
                BulkResult(id=result.id, ok=result.ok, status=result.status, error=dict(result.error))
                for result in results
            ]
        )


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

    @api.post("/items/{item_id}/recommendation", status_code=201)
    async def recommend(caller: Caller, item_id: str, body: AdviceIn, key: Key = None) -> View:
        """A comment that recommends a decision to the people who decide; it decides nothing."""
        advice = Advice(body.revision, body.hash, body.verb, body.reason)
        return await inbox.recommend(caller, item_id, advice, key=key)

    @api.get("/people")
    async def people(
        caller: Caller,
        q: Annotated[str, Query(max_length=200, description="a part of the name")] = "",
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
    ) -> list[PersonView]:
        """The people whom a comment can mention."""
        return [PersonView(**person) for person in await inbox.people(caller, q, limit=limit)]

    @api.put("/items/{item_id}/owner")
    async def assign(caller: Caller, item_id: str, body: OwnerIn) -> View:
        return await inbox.assign(caller, item_id, body.owner)

    @api.delete("/items/{item_id}/owner")
    async def unassign(caller: Caller, item_id: str) -> View:
        return await inbox.assign(caller, item_id, None)


def _mark(api: APIRouter, inbox: Inbox) -> None:
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
        caller: Caller,
        last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
        after: Annotated[int | None, Query(ge=0, lt=10**18)] = None,
    ) -> StreamingResponse:
        """Changes after the event `Last-Event-ID`, else after the number `after`, else from now on."""
        resumed = _number(last_event_id)
        after = after if resumed is None else resumed
        return StreamingResponse(_sent(live.follow(caller, after=after)), media_type="text/event-stream", headers=_SSE)


_SSE = {"cache-control": "no-store", "x-accel-buffering": "no"}


def _number(last_event_id: str | None) -> int | None:
    if last_event_id is None:
        return None
    if not last_event_id.isdecimal() or len(last_event_id) > 18:
        raise Invalid("Last-Event-ID is not an id of this stream")
    return int(last_event_id)


async def _sent(changes: AsyncIterator[Change | None]) -> AsyncIterator[bytes]:
    yield b": here\n\n"
    async for change in changes:
        if change is None:
            yield b": still here\n\n"
        else:
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (
                change.seq,
                change.kind.encode(),
                orjson.dumps(change.to_json()),
            )
