"""Past calls, to try out a policy or a standing approval on them before it takes effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assent.identity.model.access import Principal
from assent.identity.rows.agents import agent_of
from assent.kernel.store.transaction import Tx
from assent.review.decisions.consequences import case_of
from assent.review.dialects import approves
from assent.review.model.items import Item
from assent.review.model.policies import Call, Effect
from assent.review.model.search.filters import Filter
from assent.review.rows import item_search

MOST_REPLAYED = 10_000


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call as the agent made it, and the effect of the policy at that time."""

    item: Item
    call: Call
    effect: Effect


def past_calls(tx: Tx, caller: Principal, criteria: Filter | None = None) -> Iterator[PastCall]:
    """Newest first, of at most `MOST_REPLAYED` items."""
    cursor, seen = None, 0
    while seen < MOST_REPLAYED:
        page = item_search.page(
            tx, criteria or Filter(), caller.actor, None, sort="-created_at", limit=500, cursor=cursor
        )
        for item in page.items:
            seen += 1
            yield from _calls(tx, item)
        cursor = page.next
        if cursor is None:
            return


def _calls(tx: Tx, item: Item) -> Iterator[PastCall]:
    case = case_of(tx, item)
    agent, asks_only = agent_of(tx, item.requester), not approves(case.asked)
    for action in case.asked.actions:
        call = Call(action.name, action.args, item.graph_id or "", agent.name, tx.tenant, agent.id, question=asks_only)
        yield PastCall(item, call, case.terms.effect)
