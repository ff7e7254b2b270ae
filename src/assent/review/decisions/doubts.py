"""Settles calls in doubt: a person records the outcome of a call that was interrupted while it ran."""

from __future__ import annotations

from collections.abc import Sequence

from assent.errors import Conflict, InvalidDecision
from assent.identity.model.access import Principal
from assent.identity.model.passkeys import Party, Proof
from assent.kernel.store.transaction import Tx
from assent.review import changes, dialects, thread_items
from assent.review.decisions import confirmation
from assent.review.decisions.confirmation import Options
from assent.review.decisions.consequences import Case, as_revised, case_of
from assent.review.decisions.decide import require_item
from assent.review.decisions.rights import require_right
from assent.review.model.grants import Grant
from assent.review.model.items import Execution, Item, as_asked
from assent.review.model.lifecycle import Message, Settled
from assent.review.rows import decisions, grants
from assent.threads.rows import contributors, runs, threads

_SETTLED = {"done": Execution.DONE, "run_again": Execution.GRANTED, "abandon": Execution.ABANDONED}


def settle(
    tx: Tx,
    caller: Principal,
    item_id: str,
    outcome: str,
    notes: str | None,
    *,
    via: str,
    grant_id: str | None = None,
    named: bool = False,
    proof: Proof | None = None,
) -> Item:
    """Records the outcome of an interrupted call: done, run again, or abandoned. Running it again is an approval: where
    the terms require a passkey, `proof` is its signature. `named`: a call that was granted before needs its `grant_id`,
    because the caller may have been shown an earlier doubt, and looked into that one."""
    item = require_item(tx, item_id, lock=True)
    case, doubtful, grant = _considered(tx, caller, item, grant_id, lock=True)
    if named and grant_id is None and grant is not None and _granted_before(tx, grant):
        raise _unnamed(doubtful)
    asked_in = _asked_in(tx, item, grant)
    passkey = None
    if outcome == "run_again":
        _require_asked(tx, item, asked_in)
        if case.terms.confirm:
            what = confirmation.another_run(item, grant.id if grant else None)
            passkey = confirmation.require(tx, caller, item, what, proof)
    if grant is not None:
        grants.settle_doubt(tx, grant, None if outcome == "run_again" else {"doubt": outcome, "notes": notes})
    if grant is not None and outcome == "run_again":
        grants.renew(tx, grant, case.terms.execution_ttl)
    message = _told(tx, case, asked_in, outcome, notes) if asked_in else None
    if notes and item.thread_id is not None:
        contributors.add(tx, item.thread_id, caller.actor)
    shown = notes and case.words.without(notes)
    details = {"outcome": outcome, "notes": shown, "via": via, "grant": grant.id if grant else None}
    details |= {"passkey": passkey} if passkey else {}
    event = Settled(execution=_SETTLED[outcome], others=len(doubtful) > 1, message=message, told=details)
    return changes.apply(tx, caller, item, event)


def _told(tx: Tx, case: Case, asked_in: str, outcome: str, notes: str | None) -> Message | None:
    """The message to the thread that waits for the outcome. A thread on another deployment waits for the answer itself,
    which was accepted there and lost."""
    if not case.item.remote or case.item.origin is not None:
        return thread_items.resumption(case.item, asked_in, {"outcome": outcome, "notes": notes})
    decision = decisions.closing(tx, case.item.id)
    if outcome != "run_again" or decision is None:
        return None
    value = dialects.encode(case.asked, as_asked(as_revised(decision.verdicts), case.revision))
    return thread_items.resumption(case.item, asked_in, value)


def _asked_in(tx: Tx, item: Item, grant: Grant | None) -> str | None:
    """The interrupt that waits for the outcome. The gate records its id shortly before the run stops there."""
    asked_in = grant.doubt_id if grant is not None else item.doubt_id
    thread = threads.get(tx, item.thread_id) if item.thread_id else None
    waits = thread is None or any(question["id"] == asked_in for question in thread.pending)
    return asked_in if waits else None


def to_confirm(
    tx: Tx, caller: Principal, item_id: str, party: Party | None, *, grant_id: str | None = None
) -> Options | None:
    """The WebAuthn options for the signature that another run needs; None if it needs none."""
    item = require_item(tx, item_id)
    case, _, grant = _considered(tx, caller, item, grant_id)
    _require_asked(tx, item, _asked_in(tx, item, grant))
    if not case.terms.confirm:
        return None
    return confirmation.ask(tx, caller, item, confirmation.another_run(item, grant.id if grant else None), party)


def _considered(
    tx: Tx, caller: Principal, item: Item, grant_id: str | None, *, lock: bool = False
) -> tuple[Case, Sequence[Grant], Grant | None]:
    """Checks that the caller may settle it, and returns the case, its calls in doubt and the selected one."""
    if item.execution is not Execution.IN_DOUBT:
        raise Conflict("no call of this item is in doubt")
    case = case_of(tx, item)
    require_right(tx, caller, case, lock=lock)
    doubtful = grants.in_doubt(tx, item.id)
    return case, doubtful, _doubted(doubtful, grant_id)


def _require_asked(tx: Tx, item: Item, asked_in: str | None) -> None:
    if asked_in is None:
        raise Conflict(_why_not_again(tx, item))


def _why_not_again(tx: Tx, item: Item) -> str:
    """A run records the doubt and raises the question a moment later, or the next run does; before that, there is no
    question to answer."""
    thread = threads.get(tx, item.thread_id) if item.thread_id else None
    if thread is not None and (runs.active(tx, thread.id) or thread_items.is_answered(tx, item)):
        return "its run has not raised the question yet: retry in a moment"
    return "the run that made this call has ended: start another run, which raises the question again"


def _doubted(doubtful: Sequence[Grant], grant_id: str | None) -> Grant | None:
    """The selected call. With several in doubt, `grant_id` is required: their outcomes may differ."""
    if not doubtful and grant_id is None:
        return None
    chosen = [grant for grant in doubtful if grant_id in (None, grant.id)]
    if len(chosen) == 1:
        return chosen[0]
    raise _unnamed(doubtful)


def _unnamed(doubtful: Sequence[Grant]) -> InvalidDecision:
    named = [{"grant_id": grant.id, "tool": grant.tool, "call_id": grant.call_id} for grant in doubtful]
    return InvalidDecision("name one of the calls that are in doubt by its grant_id", grants=named, errors=[])


def _granted_before(tx: Tx, grant: Grant) -> bool:
    issued = grants.of_item(tx, grant.item_id)
    return any(other.call_id == grant.call_id and other.id != grant.id for other in issued)
