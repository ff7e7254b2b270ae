"""REST: reviews of the work of agents, by the id of the run."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import Field

from assent.kernel.canonical import Json
from assent.review.workspace_reviews import ReviewRequest, Seen, WorkspaceReviews
from assent.surfaces.api.inbox import Short, Text, Via
from assent.surfaces.api.schemas import Body, Key
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import router

View = dict[str, Any]
NonEmpty = Annotated[str, Field(min_length=1, max_length=20_000)]


class ReviewRequestIn(Body):
    """The event `review.requested` of a run."""

    run_id: Short
    body: NonEmpty = Field(description="the review, as Markdown")
    proposed_changes: list[Json] = Field([], max_length=1_000)
    target_path: Short | None = None
    agent: Short | None = Field(None, description="the agent of the run, by name or id; by default the caller")
    callback: Short | None = Field(None, description="a URL that receives the wake-up, signed")

    def request(self) -> ReviewRequest:
        changes = tuple(self.proposed_changes)
        return ReviewRequest(self.run_id, self.body, changes, self.target_path, self.agent, self.callback)


class SeenIn(Body):
    revision: int
    hash: str

    def seen(self) -> Seen:
        return Seen(self.revision, self.hash)


class VerdictIn(SeenIn):
    notes: Text | None = None


class ResumptionIn(SeenIn):
    response_markdown: Text = Field(description="the notes for the agent; the run gets them as `responseMarkdown`")


def routes(reviews: WorkspaceReviews) -> APIRouter:
    api = router("/api/workspace-reviews", "workspace reviews")

    @api.post("", status_code=201, responses={200: {"description": "the item of this run, unchanged"}})
    async def request_review(caller: Caller, body: ReviewRequestIn, response: Response, key: Key = None) -> View:
        item, fresh = await reviews.request(caller, body.request(), key=key)
        response.status_code = 201 if fresh else 200
        return item

    @api.get("/{run_id}")
    async def get_review(caller: Caller, run_id: str) -> View:
        return await reviews.get(caller, run_id)

    @api.post("/{run_id}/acceptance")
    async def accept_review(caller: Caller, run_id: str, body: VerdictIn, key: Key = None, via: Via = "rest") -> View:
        return await reviews.accept(caller, run_id, body.seen(), notes=body.notes, via=via, key=key)

    @api.post("/{run_id}/cancellation")
    async def cancel_review(caller: Caller, run_id: str, body: VerdictIn, key: Key = None, via: Via = "rest") -> View:
        """Rejects the work as a person; withdraws the review as its agent."""
        return await reviews.cancel(caller, run_id, body.seen(), notes=body.notes, via=via, key=key)

    @api.post("/{run_id}/resumption")
    async def resume_run(caller: Caller, run_id: str, body: ResumptionIn, key: Key = None, via: Via = "rest") -> View:
        notes = body.response_markdown
        return await reviews.resume(caller, run_id, body.seen(), response_markdown=notes, via=via, key=key)

    return api
