"""The terms of a question under the policy in force, and the columns of its item that they fill."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from assent.identity.rows.agents import agent_of
from assent.kernel.store.transaction import Tx
from assent.review.dialects import approves
from assent.review.model.items import Due
from assent.review.model.questions import Question
from assent.review.model.search.terms import Terms, next_due, terms_of
from assent.review.rows import policies
from assent.threads.model.deployments import is_remote


def judged(tx: Tx, question: Question, *, graph_id: str | None, requester: str, gated: bool) -> Terms:
    """The terms of a question under the policy in force."""
    version = policies.in_force(tx)
    terms = terms_of(
        version.parsed(),
        version.number,
        question,
        graph=graph_id,
        agent=agent_of(tx, requester),
        tenant=tx.tenant,
        gated=gated,
        approves=approves(question),
    )
    terms = terms.advised() if is_remote(requester) else terms
    marks = {action.name: tx.marks(graph_id, action.name) for action in question.actions} if graph_id else {}
    return replace(terms, marks={tool: paths for tool, paths in marks.items() if paths})


def bound(terms: Terms) -> dict[str, Any]:
    """The columns of an item that its terms fill."""
    return {"gated": terms.gated, "risk": terms.risk, "policy": terms.to_json()}


def timed(terms: Terms, asked_at: datetime, expires_at: datetime | None) -> dict[str, Any]:
    """The columns of an item with its deadlines under these terms."""
    plan = terms.schedule(asked_at, expires_at)
    due_at, due = next_due(plan, asked_at)
    return {"expires_at": next((at for at, end in plan if end is Due.EXPIRE), None), "due_at": due_at, "due": due}
