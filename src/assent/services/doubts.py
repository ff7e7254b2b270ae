"""What became of a call that was cut off while it ran: only a person can say."""

from __future__ import annotations

from collections.abc import Sequence

from assent.domain.access import Principal
from assent.domain.grants import Grant
from assent.domain.items import Execution, Item
from assent.domain.terms import Terms
from assent.errors import Conflict, InvalidDecision
from assent.services.carrying import case_of
from assent.services.deciding import found
from assent.services.rights import require_right
from assent.store import asking, events, grants, items, runs, threads
from assent.store.transaction import Tx


def settle(
    tx: Tx, caller: Principal, item_id: str, outcome: str, notes: str | None, *, via: str, grant_id: str | None = None
) -> Item:
    """A person says what became of a call that was cut off: done, to be run again, or abandoned."""
    item = found(tx, item_id, lock=True)
    if item.execution is not Execution.IN_DOUBT:
        raise Conflict("nothing about this item is in doubt")
    require_right(tx, caller, case_of(tx, item))
    doubtful = grants.in_doubt(tx, item.id)
    grant = _doubted(doubtful, grant_id)
    asked_in = grant.doubt_id if grant is not None else item.doubt_id
    if outcome == "run_again" and asked_in is None:
        raise Conflict(_why_not_again(tx, item))
    if grant is not None:
        grants.settle_doubt(tx, grant, None if outcome == "run_again" else {"doubt": outcome, "notes": notes})
    if grant is not None and outcome == "run_again":
        grants.renew(tx, grant, Terms.from_json(item.policy).execution_ttl)
    if asked_in is not None:
        asking.deliver(tx, item, asked_in, {"outcome": outcome, "notes": notes})
    settled = {"done": Execution.DONE, "run_again": Execution.GRANTED, "abandon": Execution.ABANDONED}[outcome]
    changed = items.change(tx, item, execution=Execution.IN_DOUBT if len(doubtful) > 1 else settled)
    told = {"outcome": outcome, "notes": notes, "via": via, "grant": grant.id if grant else None}
    events.append(tx, caller, "item.doubt_settled", item.subject, told)
    return changed


def _why_not_again(tx: Tx, item: Item) -> str:
    """A run notes the doubt, and asks about it a moment later, or leaves that to the next one in line: only then is
    there a question to answer with this."""
    thread = threads.get(tx, item.thread_id) if item.thread_id else None
    if thread is not None and (runs.active(tx, thread.id) or asking.is_answered(tx, item)):
        return "its run is just about to ask: try again in a moment"
    return "the run that made this call is over: start another one, which will ask again"


def _doubted(doubtful: Sequence[Grant], grant_id: str | None) -> Grant | None:
    """The one that is spoken of. Of several, each has to be named: they may have ended differently."""
    if not doubtful and grant_id is None:
        return None
    chosen = [grant for grant in doubtful if grant_id in (None, grant.id)]
    if len(chosen) == 1:
        return chosen[0]
    named = [{"grant_id": grant.id, "tool": grant.tool, "call_id": grant.call_id} for grant in doubtful]
    raise InvalidDecision("name one of the calls that are in doubt by its grant_id", grants=named, errors=[])
