"""The breakpoint at which a thread is stopped, and the decision to pass it."""

from __future__ import annotations

from collections.abc import Sequence

from assent.errors import StaleRevision
from assent.identity.model.access import Principal
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.decisions import decide
from assent.review.dialects import breakpoint
from assent.review.model.items import Item
from assent.review.model.questions import Verb, Verdict
from assent.review.rows import items
from assent.review.search import item_terms
from assent.threads.model.runs import Run
from assent.threads.model.threads import Thread


def open_breakpoint(tx: Tx, thread: Thread) -> Item | None:
    """The item of the breakpoint at which the thread is stopped."""
    if not thread.next:
        return None
    return next((item for item in items.open_of_thread(tx, thread.id) if item.dialect == breakpoint.NAME), None)


def pass_breakpoint(tx: Tx, caller: Principal, thread: Thread, item: Item) -> str | None:
    """Approves the breakpoint for a run without input, at its first revision only. Returns the checkpoint heads at the
    breakpoint."""
    if item.gated and item.revision > 1:
        raise StaleRevision(revision=item.revision, hash=item.hash)
    decide.answered(tx, caller, item, [Verdict("0", Verb.APPROVE)])
    return thread_items.heads_of(tx, item, thread)


def has_stopped(tx: Tx, graph_id: str) -> bool:
    """Whether a thread of the graph was ever stopped at a breakpoint."""
    return items.has_stopped(tx, graph_id)


def is_gated(tx: Tx, run: Run, nodes: Sequence[str]) -> bool:
    """Whether the policy in force gates a stop of the run before these nodes."""
    question = breakpoint.question(nodes)
    return item_terms.judged(tx, question, graph_id=run.graph_id, requester=run.actor, gated=False).gated
