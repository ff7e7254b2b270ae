"""The mutations: the same use cases as in REST, with the same idempotency keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, Any

import strawberry

from assent.surfaces.api.inbox import (
    CommentIn,
    DecisionIn,
    NotesIn,
    RequestIn,
    ResubmissionIn,
    RevisionRequestIn,
)
from assent.surfaces.api.workspace_reviews import ResumptionIn, VerdictIn
from assent.surfaces.graphql.context import Context, Told, View
from assent.surfaces.graphql.inputs import CreateInboxItemInput, DecisionInput, KeyIn, ResubmitInboxItemInput, checked
from assent.surfaces.graphql.types import Comment, InboxItem

VIA = "graphql"
Key = Annotated[
    str | None,
    strawberry.argument(
        description="A retry with the same key does nothing twice; the header Idempotency-Key if null."
    ),
]


async def _decide(info: Told, item_id: str, body: DecisionIn, key: str | None) -> InboxItem:
    context = info.context
    proof = context.proof(body.assertion)
    return _item(
        await context.inbox.decide(context.caller, item_id, body.proposal(VIA), key=_key(context, key), proof=proof)
    )


async def _request_revision(
    info: Told,
    id: strawberry.ID,
    revision: int,
    hash: str,
    notes: str,
    grace_seconds: float = 0,
    idempotency_key: Key = None,
) -> InboxItem:
    fields = {"revision": revision, "hash": hash, "notes": notes, "grace_seconds": grace_seconds}
    body, context = checked(RevisionRequestIn, fields), info.context
    seen: dict[str, Any] = {"revision": body.revision, "hash": body.hash, "notes": body.notes}
    grace, key = timedelta(seconds=body.grace_seconds), _key(context, idempotency_key)
    return _item(await context.inbox.ask_for_revision(context.caller, id, **seen, grace=grace, via=VIA, key=key))


async def _judge(
    info: Told, act: Callable[..., Awaitable[View]], run_id: str, verdict: dict[str, Any], key: str | None
) -> InboxItem:
    """Accepts or cancels the review of a run."""
    body, context = checked(VerdictIn, verdict), info.context
    key = _key(context, key)
    return _item(await act(context.caller, run_id, body.seen(), notes=body.notes, via=VIA, key=key))


@strawberry.type
class Mutation:
    @strawberry.mutation(description="Asks a person. A repeated `dedupeKey` returns the existing item.")
    async def create_inbox_item(
        self, info: Told, input: CreateInboxItemInput, idempotency_key: Key = None
    ) -> InboxItem:
        request, context = checked(RequestIn, input).request(), info.context
        item, _ = await context.inbox.create(context.caller, request, key=_key(context, idempotency_key))
        return _item(item)

    @strawberry.mutation(description="Approves all actions of the revision that the caller saw.")
    async def approve_inbox_item(
        self,
        info: Told,
        id: strawberry.ID,
        revision: int,
        hash: str,
        notes: str | None = None,
        grace_seconds: float = 0,
        idempotency_key: Key = None,
    ) -> InboxItem:
        seen = {"revision": revision, "hash": hash, "notes": notes, "grace_seconds": grace_seconds}
        return await _decide(info, id, checked(DecisionIn, {**seen, "verb": "approve"}), idempotency_key)

    @strawberry.mutation(description="Rejects all actions. The agent receives the message.")
    async def reject_inbox_item(
        self,
        info: Told,
        id: strawberry.ID,
        revision: int,
        hash: str,
        message: str | None = None,
        notes: str | None = None,
        grace_seconds: float = 0,
        idempotency_key: Key = None,
    ) -> InboxItem:
        seen = {"revision": revision, "hash": hash, "notes": notes, "grace_seconds": grace_seconds}
        fields = {**seen, "verb": "reject", "message": message}
        return await _decide(info, id, checked(DecisionIn, fields), idempotency_key)

    @strawberry.mutation(description="Decides with one verdict per action, or one verb for all.")
    async def decide_inbox_item(
        self, info: Told, id: strawberry.ID, decision: DecisionInput, idempotency_key: Key = None
    ) -> InboxItem:
        return await _decide(info, id, checked(DecisionIn, decision), idempotency_key)

    request_revision: InboxItem = strawberry.mutation(
        resolver=_request_revision, description="Sends the item back with notes."
    )
    request_revision_inbox_item: InboxItem = strawberry.mutation(
        resolver=_request_revision, description="The same as `requestRevision`."
    )

    @strawberry.mutation(description="The next revision of a request that was sent back.")
    async def resubmit_inbox_item(
        self, info: Told, id: strawberry.ID, input: ResubmitInboxItemInput, idempotency_key: Key = None
    ) -> InboxItem:
        changes, context = checked(ResubmissionIn, input).changes(), info.context
        return _item(await context.inbox.resubmit(context.caller, id, changes, key=_key(context, idempotency_key)))

    @strawberry.mutation(description="Withdraws the item, or closes it without a decision.")
    async def cancel_inbox_item(
        self, info: Told, id: strawberry.ID, notes: str | None = None, idempotency_key: Key = None
    ) -> InboxItem:
        body, context = checked(NotesIn, {"notes": notes}), info.context
        key = _key(context, idempotency_key)
        return _item(await context.inbox.cancel(context.caller, id, notes=body.notes, key=key))

    @strawberry.mutation
    async def add_inbox_item_comment(
        self, info: Told, id: strawberry.ID, text: str, idempotency_key: Key = None
    ) -> Comment:
        body, context = checked(CommentIn, {"text": text}), info.context
        key = _key(context, idempotency_key)
        return Comment.of(await context.inbox.comment(context.caller, id, body.text, key=key))

    @strawberry.mutation(description="Approves the work of a run: it resumes.")
    async def accept_agent_workspace_review(
        self,
        info: Told,
        run_id: strawberry.ID,
        revision: int,
        hash: str,
        notes: str | None = None,
        idempotency_key: Key = None,
    ) -> InboxItem:
        verdict = {"revision": revision, "hash": hash, "notes": notes}
        return await _judge(info, info.context.sources.reviews.accept, run_id, verdict, idempotency_key)

    @strawberry.mutation(description="Rejects the work of a run as a person; withdraws the review as its agent.")
    async def cancel_agent_workspace_review(
        self,
        info: Told,
        run_id: strawberry.ID,
        revision: int,
        hash: str,
        notes: str | None = None,
        idempotency_key: Key = None,
    ) -> InboxItem:
        verdict = {"revision": revision, "hash": hash, "notes": notes}
        return await _judge(info, info.context.sources.reviews.cancel, run_id, verdict, idempotency_key)

    @strawberry.mutation(description="Sends the work of a run back with notes: it resumes with them.")
    async def resume_agent_workspace_run(
        self,
        info: Told,
        run_id: strawberry.ID,
        revision: int,
        hash: str,
        response_markdown: str,
        idempotency_key: Key = None,
    ) -> InboxItem:
        fields = {"revision": revision, "hash": hash, "response_markdown": response_markdown}
        body, context = checked(ResumptionIn, fields), info.context
        notes, key = body.response_markdown, _key(context, idempotency_key)
        reviews = context.sources.reviews
        return _item(
            await reviews.resume(context.caller, run_id, body.seen(), response_markdown=notes, via=VIA, key=key)
        )

    @strawberry.mutation(description="Links a thread to the item.")
    async def add_inbox_item_link(self, info: Told, id: strawberry.ID, thread_id: strawberry.ID) -> InboxItem:
        return _item(await info.context.inbox.link(info.context.caller, id, thread_id))

    @strawberry.mutation
    async def remove_inbox_item_link(self, info: Told, id: strawberry.ID, thread_id: strawberry.ID) -> InboxItem:
        return _item(await info.context.inbox.unlink(info.context.caller, id, thread_id))


def _item(view: View) -> InboxItem:
    return InboxItem.of(view, detailed=True)


def _key(context: Context, named: str | None) -> str | None:
    key = named if named is not None else context.key
    return None if key is None else checked(KeyIn, {"key": key}).key
