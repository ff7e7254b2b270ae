"""Questions on a store alone, without runs: threads that wait, and the people and agents around them."""

from typing import Any

from assent.identity.model.access import ROLE_SCOPES, Kind, Principal, Role, Scope
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.decisions.decide import Proposal
from assent.review.model.items import Item
from assent.review.rows import items
from assent.threads.model.threads import Interrupts, ThreadStatus
from assent.threads.rows import threads

AGENT_SCOPES = frozenset({Scope.RUNS_WRITE, Scope.ITEMS_CREATE, Scope.ITEMS_READ, Scope.COMMENTS_WRITE})


def person(name: str, tenant: str) -> Principal:
    return Principal(Kind.REVIEWER, name, name, tenant, ROLE_SCOPES[Role.REVIEWER])


def agent(tenant: str, name: str = "agent") -> Principal:
    return Principal(Kind.AGENT, name, name, tenant, AGENT_SCOPES)


def confirmation(call_id: str, tool: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "confirmation", "tool_calls": [{"call_id": call_id, "tool_name": tool, "arguments": args}]}


def wait_for(tx: Tx, /, thread_id: str, **questions: Any) -> list[Item]:
    """The thread asks these questions now, by interrupt id, and nothing else; the items that wait for it then."""
    threads.insert(tx, thread_id, {"graph_id": "g"})
    pending = [{"id": interrupt_id, "value": value} for interrupt_id, value in questions.items()]
    asked: Interrupts = {"task": pending} if pending else {}
    status = ThreadStatus.INTERRUPTED if pending else ThreadStatus.IDLE
    threads.set_state(tx, thread_id, status=status, values={}, interrupts=asked, error=None, next=[])
    thread_items.follow(tx, thread_items.Waiting(thread_id, pending, graph_id="g"))
    return items.open_of_thread(tx, thread_id)


def proposal(item: Item, verb: Any = None, **more: Any) -> Proposal:
    return Proposal(item.revision, item.hash, verb=verb, **more)
