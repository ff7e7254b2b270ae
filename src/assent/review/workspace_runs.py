"""Runs whose work a person reviews: the agent of a run, the recipient of its review, and the columns of the item."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from assent.identity.model.access import Kind, Scope
from assent.identity.model.agents import RegisteredAgent, Source
from assent.identity.rows import agents, users
from assent.kernel.store.transaction import Tx
from assent.review.dialects import raw, workspace_review
from assent.review.model.questions import Question
from assent.review.model.routing import Link, Routing, route, titled
from assent.review.rows import items
from assent.threads.model.deployments import is_remote

ENTITY = "agent_workspace_run"


def agent_of_run(tx: Tx, requester: str, graph_id: str | None) -> RegisteredAgent | None:
    """The agent that started the run; of a run that a person, a service or a caller without a key started, the agent
    with the name of its graph. Another deployment chooses the names of its graphs, so it has no agent here."""
    kind, _, agent_id = requester.partition(":")
    own = agents.by_id(tx, agent_id) if kind == Kind.AGENT else None
    named = agents.named(tx, graph_id) if own is None and graph_id and not is_remote(requester) else []
    return own or (named[0] if len(named) == 1 else None)


def as_review(tx: Tx, question: Question, requester: str, graph_id: str | None) -> Question:
    """The question, or the review that it is if a system agent stops with a value of no other form."""
    plain = question.dialect == raw.NAME and question.interrupt is not None
    if not plain or question.problems or question.response_schema is not None:
        return question
    agent = agent_of_run(tx, requester, graph_id)
    is_system = agent is not None and agent.source is Source.SYSTEM
    return workspace_review.question(question.interrupt) if is_system and question.interrupt else question


def routed(
    tx: Tx, question: Question, agent: RegisteredAgent | None, run_id: str | None
) -> tuple[Question, dict[str, Any]]:
    """The question with its title, and the columns of its item."""
    routing = routing_of(tx, agent)
    subject = f"{agent.name}: {question.title}" if agent else question.title
    columns: dict[str, Any] = {
        "recipient": f"{Kind.REVIEWER}:{routing.human_id}" if routing.human_id else None,
        "routing": {**routing.to_json(), "agent": agent.id if agent else None},
    }
    if run_id is not None:
        reviewed = items.by_workspace_run(tx, run_id) is not None  # a second question of the same run
        columns |= {"entity_type": ENTITY, "entity_id": run_id, "workspace_run_id": None if reviewed else run_id}
    return replace(question, title=titled(routing, subject)), columns


def routing_of(tx: Tx, agent: RegisteredAgent | None) -> Routing:
    return route(agent.id if agent else None, tx.tenant, partial(_link, tx))


def _link(tx: Tx, agent_id: str) -> Link | None:
    agent = agents.by_id(tx, agent_id)
    if agent is None:
        return None
    human = users.by_id(tx, agent.human_id) if agent.human_id else None
    decides = human is not None and human.may(Scope.DECIDE)
    system = agent.source is Source.SYSTEM
    return Link(agent.id, agent.name, tx.tenant, agent.parent_id, agent.human_id, system=system, decides=decides)
