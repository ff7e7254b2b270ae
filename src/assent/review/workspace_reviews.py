"""Workspace reviews: the work of one run, shown to the person paired with its agent, or to the operators.

A run of this server asks by its interrupt, and `review/thread_items.py` creates the item. A run elsewhere asks with an
event: its item waits here, and its decision goes to the callback. Both have one item, found by the id of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from assent.errors import Conflict, Forbidden, NotFound
from assent.identity.agents import require_agent
from assent.identity.model.access import Kind, Principal, Scope
from assent.identity.model.agents import RegisteredAgent
from assent.identity.rows import agents, users
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.kernel.quotas import quotas
from assent.kernel.store import idempotency
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.outbox.targets import Targets
from assent.review import thread_items, workspace_runs
from assent.review.decisions.consequences import case_of
from assent.review.decisions.decide import Proposal
from assent.review.dialects import request as dialect
from assent.review.dialects.workspace_review import ALLOWED, NAME
from assent.review.inbox import Inbox
from assent.review.item_views import View, full
from assent.review.model.items import Item, ItemStatus, Revision
from assent.review.model.lifecycle import Resubmitted
from assent.review.model.questions import Question, Verb, headline
from assent.review.model.routing import ADVICE, Routing
from assent.review.model.search.terms import Terms, stricter
from assent.review.rows import items
from assent.review.search import item_terms, item_words
from assent.review.threads.secrets import require_unmasked
from assent.threads.rows import runs
from assent.threads.visible_threads import sees_thread

_LOCK = "workspace review"


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """The event `review.requested`. `agent` names the agent of the run, where it is not the caller."""

    run_id: str
    body: str
    proposed_changes: tuple[Json, ...] = ()
    target_path: str | None = None
    agent: str | None = None
    callback: str | None = None

    def config(self) -> dict[str, Json]:
        given = {"body": self.body, "proposed_changes": list(self.proposed_changes), "target_path": self.target_path}
        return {name: value for name, value in given.items() if value not in (None, [])}


@dataclass(frozen=True, slots=True)
class Seen:
    """The revision that the caller was shown."""

    revision: int
    hash: str


@dataclass(frozen=True, slots=True)
class AgentRouting:
    """A route, with the name of the person, or the part of the registry to check."""

    routing: Routing
    human: str | None
    why: str | None


class WorkspaceReviews:
    def __init__(self, store: Store, inbox: Inbox, *, targets: Targets | None = None) -> None:
        self._store = store
        self._inbox = inbox
        self._targets = targets or Targets()

    async def request(self, caller: Principal, request: ReviewRequest, *, key: str | None = None) -> tuple[View, bool]:
        """The item of the run, and whether the event has created or revised it: a repeated event of the same agent
        changes nothing."""
        caller.require(Scope.ITEMS_CREATE)
        require_unmasked(request.config(), "")
        if request.callback is not None:
            self._targets.check_url(request.callback)

        def act(tx: Tx) -> Json:
            item, fresh = _request(tx, caller, request)
            return {"item": full(tx, caller, item), "fresh": fresh}

        plain = ("workspace review", asdict(request))
        made = await self._store.write(caller.tenant, idempotency.once, caller.actor, key, _listed(plain), act)
        item = made["item"]
        if item["requester"] == caller.actor and item["source"]["thread_id"] is None:
            return item, made["fresh"]
        return await self._inbox.get(caller, item["id"]), made["fresh"]

    async def get(self, caller: Principal, run_id: str) -> View:
        caller.require(Scope.ITEMS_READ)
        return await self._inbox.get(caller, await self._item_id(caller, run_id))

    async def accept(
        self,
        caller: Principal,
        run_id: str,
        seen: Seen,
        *,
        notes: str | None = None,
        via: str = "rest",
        key: str | None = None,
    ) -> View:
        """Approves the work: the run resumes."""
        proposal = Proposal(seen.revision, seen.hash, verb=Verb.APPROVE, notes=notes, via=via)
        return await self._inbox.decide(caller, await self._item_id(caller, run_id), proposal, key=key)

    async def cancel(
        self,
        caller: Principal,
        run_id: str,
        seen: Seen,
        *,
        notes: str | None = None,
        via: str = "rest",
        key: str | None = None,
    ) -> View:
        """Rejects the work: the run is cancelled. The agent itself withdraws its review this way."""
        item_id = await self._item_id(caller, run_id)
        if not caller.is_person:
            return await self._inbox.cancel(caller, item_id, notes=notes, key=key)
        proposal = Proposal(seen.revision, seen.hash, verb=Verb.REJECT, notes=notes, via=via)
        return await self._inbox.decide(caller, item_id, proposal, key=key)

    async def resume(
        self,
        caller: Principal,
        run_id: str,
        seen: Seen,
        *,
        response_markdown: str,
        via: str = "rest",
        key: str | None = None,
    ) -> View:
        """Requests a revision: the run resumes with the notes."""
        return await self._inbox.ask_for_revision(
            caller,
            await self._item_id(caller, run_id),
            revision=seen.revision,
            hash=seen.hash,
            notes=response_markdown,
            grace=timedelta(),
            via=via,
            key=key,
        )

    async def routings(self, caller: Principal, agent_ids: Sequence[str]) -> dict[str, AgentRouting]:
        """The route that a review of each agent takes now."""
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, _routings, agent_ids)

    async def _item_id(self, caller: Principal, run_id: str) -> str:
        return (await self._store.read(caller.tenant, _require_review, run_id)).id


def _routings(tx: Tx, agent_ids: Sequence[str]) -> dict[str, AgentRouting]:
    routings = {agent_id: workspace_runs.routing_of(tx, agents.by_id(tx, agent_id)) for agent_id in agent_ids}
    return {agent_id: _explained(tx, routing) for agent_id, routing in routings.items()}


def _explained(tx: Tx, routing: Routing) -> AgentRouting:
    human = users.by_id(tx, routing.human_id) if routing.human_id else None
    return AgentRouting(routing, human.name if human else None, ADVICE[routing.reason] if routing.reason else None)


def _require_review(tx: Tx, run_id: str) -> Item:
    item = items.by_workspace_run(tx, run_id) or items.workspace_review_by(tx, run_id)
    if item is None:
        raise NotFound(f"run {run_id!r} has no workspace review")
    return item


def _listed(request: tuple[str, dict[str, Any]]) -> Json:
    name, fields = request
    return [name, {**fields, "proposed_changes": list(fields["proposed_changes"])}]


def _request(tx: Tx, caller: Principal, request: ReviewRequest) -> tuple[Item, bool]:
    idempotency.hold(tx, _LOCK, request.run_id)
    item = items.by_workspace_run(tx, request.run_id) or items.workspace_review_by(tx, request.run_id)
    _require_elsewhere(tx, caller, request, item)
    if item is None:
        return _create(tx, caller, request), True
    if not item.held:
        return item, False
    _require_same_agent(tx, caller, request, item)
    if canonical.same(items.revision(tx, item.id, item.revision).asked, _asked(request)):
        return item, False
    if item.status is not ItemStatus.REVISION_REQUESTED or item.requester != caller.actor:
        raise Conflict(
            f"run {request.run_id!r} has a review with other content, and its status is {item.status}",
            hint="its requester can change it after a request for a revision; other work needs another run_id",
        )
    return _revise(tx, caller, item, request), True


def _require_elsewhere(tx: Tx, caller: Principal, request: ReviewRequest, item: Item | None) -> None:
    """A run of this server has the item that its interrupt created, or none. Its question cannot be replaced by another
    one: the run would get the answer to it."""
    run = runs.get(tx, request.run_id)
    if run is None:
        return
    if not sees_thread(tx, caller, run.thread_id):
        raise NotFound(f"run {request.run_id!r} not found")
    if item is None:
        raise Conflict(
            f"the run of this server does not ask for a review, it is {run.status}",
            hint=f'stop it with interrupt({{"kind": "{NAME}", "body": …}}); assent backfill creates missing items',
        )


def _require_same_agent(tx: Tx, caller: Principal, request: ReviewRequest, item: Item) -> None:
    """The first event of a run takes its id. Another agent with this id would get the decision about other work."""
    if item.requester == caller.actor:
        return
    agent = _agent(tx, caller, request.agent)
    if agent is None or agent.id != (item.routing or {}).get("agent"):
        raise Conflict(
            f"run {request.run_id!r} has a review of another agent",
            hint="use a run_id that no other agent uses; a service names the agent of the run with agent",
        )


def _agent(tx: Tx, caller: Principal, named: str | None) -> RegisteredAgent | None:
    """An agent speaks for itself; services and people name the agent."""
    agent = require_agent(tx, named) if named is not None else None
    if caller.kind is Kind.AGENT and agent is not None and agent.actor != caller.actor:
        raise Forbidden("an agent can request reviews of its own runs only", hint="leave the agent out")
    return agent or workspace_runs.agent_of_run(tx, caller.actor, None)


def _create(tx: Tx, caller: Principal, request: ReviewRequest) -> Item:
    quotas.require_storage(tx)
    quotas.require_item(tx)
    asked, question, columns = _routed(tx, caller, request)
    terms = _terms(tx, caller, question)
    revision = Revision(1, asked, author=caller.actor)
    columns |= {"type": NAME, "requester": caller.actor, "callback": request.callback}
    return thread_items.create(tx, question, revision, terms, **columns)


def _revise(tx: Tx, caller: Principal, item: Item, request: ReviewRequest) -> Item:
    """The next review of the run: the next revision of the item."""
    asked, question, columns = _routed(tx, caller, request)
    terms = stricter(Terms.from_json(item.policy), _terms(tx, caller, question))
    facts = {
        **item_words.words(question, terms, case_of(tx, item).words),
        **item_terms.bound(terms),
        **thread_items.address(item, columns),
    }
    revision = Revision(item.revision + 1, asked, author=caller.actor)
    revised = thread_items.revise(tx, item, Resubmitted(revision=revision, facts=facts), actor=caller.actor)
    item_words.learn(tx, revised)
    return revised


def _routed(tx: Tx, caller: Principal, request: ReviewRequest) -> tuple[dict[str, Json], Question, dict[str, Any]]:
    """The content of the revision, the question, and the columns of its item."""
    asked = _asked(request)
    agent = _agent(tx, caller, request.agent)
    question, columns = workspace_runs.routed(tx, dialect.question(asked), agent, request.run_id)
    return asked, question, columns


def _asked(request: ReviewRequest) -> dict[str, Json]:
    title = headline(str(request.target_path or request.body), "Workspace")
    action = {"key": "0", "name": NAME, "args": request.config(), "allowed": [str(verb) for verb in ALLOWED]}
    return {"type": NAME, "title": title, "description": request.body, "actions": [action]}


def _terms(tx: Tx, caller: Principal, question: Question) -> Terms:
    return item_terms.judged(tx, question, graph_id=None, requester=caller.actor, gated=True)
