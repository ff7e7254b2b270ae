"""Deciding: from what a person says about an item to the one decision that counts, and what it sets in motion.

Everything here happens inside one transaction: the item's compare-and-set, the decision, the grants, the outbox row
and the timeline stand or fall together. Whoever comes second finds the item locked, then decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from assent import dialects
from assent.domain import questions
from assent.domain.access import Principal
from assent.domain.canonical import Json
from assent.domain.ids import new_id
from assent.domain.items import LONGEST_GRACE, Item, ItemStatus, as_asked, edits_in
from assent.domain.questions import Action, Problem, Question, Resolution, Verb, Verdict
from assent.domain.terms import Terms, stricter
from assent.errors import (
    AlreadyDecided,
    AwaitingResubmission,
    Conflict,
    Invalid,
    InvalidDecision,
    NotFound,
    StaleRevision,
)
from assent.services import carrying
from assent.services.carrying import Case, case_of
from assent.services.decision_views import decision_view, with_secrets
from assent.services.rights import editors, is_person, require_right
from assent.store import asking, decisions, events, items
from assent.store.decisions import Decision
from assent.store.transaction import Tx

LANGGRAPH = "langgraph"
"""The surface of answers that come by a run of the LangGraph API: the run itself carries them."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What someone wants to decide, about the revision they saw. One `verb` speaks for all actions."""

    revision: int
    hash: str
    verdicts: tuple[Verdict, ...] = ()
    verb: Verb | None = None
    message: str | None = None
    notes: str | None = None
    grace: timedelta = timedelta()
    via: str = "rest"

    def spread(self, case: Case) -> tuple[Verdict, ...]:
        """One verdict per action that was named, or the same one for each."""
        if self.verb is None:
            return tuple(with_secrets(case, verdict) for verdict in self.verdicts)
        if self.verdicts:
            raise InvalidDecision(errors=[{"path": "verb", "message": "give one verb for all, or one per action"}])
        return tuple(Verdict(action.key, self.verb, message=self.message) for action in case.question.actions)


def found(tx: Tx, item_id: str, *, lock: bool = False) -> Item:
    item = items.lock(tx, item_id) if lock else items.get(tx, item_id)
    if item is None:
        raise NotFound(f"there is no item {item_id!r}")
    return item


def decide(tx: Tx, caller: Principal, item_id: str, proposal: Proposal) -> Item:
    """Records what the caller says. The item closes with it, unless more people have to agree."""
    item = found(tx, item_id, lock=True)
    require_open(tx, item, proposal.revision, proposal.hash)
    _require_given_back(tx, item)
    case = case_of(tx, item)
    require_right(tx, caller, case)
    verdicts = proposal.spread(case)
    encode(case, verdicts)
    if item.status is ItemStatus.REVISION_REQUESTED:
        decisions.dismiss_closing(tx, item.id)
    with _naming_fields():
        edited = _edited(tx, caller, case, verdicts)
    return _settled(tx, caller, edited, verdicts, proposal)


def foreseen(tx: Tx, caller: Principal, item: Item, proposal: Proposal) -> str:
    """What a decision would make of the item, without making it; raises what it would raise."""
    require_open(tx, item, proposal.revision, proposal.hash)
    _require_given_back(tx, item)
    case = case_of(tx, item)
    require_right(tx, caller, case)
    verdicts = proposal.spread(case)
    encode(case, verdicts)
    status = item.moved(ItemStatus(questions.outcome(verdicts).status))
    if status is ItemStatus.REJECTED:
        return status
    carrying.require_settled(tx, case, verdicts)
    agreed = _agreed(tx, caller, case, carrying.as_revised(verdicts))
    return status if agreed + 1 >= case.terms.approvals else item.status


def answered(tx: Tx, caller: Principal, item: Item, verdicts: Sequence[Verdict] | None) -> Item:
    """Someone answered outside the inbox, and their run carries the answer. Of what is gated only a person may, by the
    same rules as in the inbox and only where their word alone is enough."""
    _require_pending(tx, item)
    case, said = case_of(tx, item), tuple(verdicts or ())
    if case.revision.edits:  # the answer speaks of what the agent asked, not of what a reviewer has made of it
        raise StaleRevision(revision=item.revision, hash=item.hash)
    if item.gated:
        require_right(tx, caller, case)
        _require_allowed(case, said)
    case = _edited(tx, caller, case, said)
    if not case.item.gated:
        return _advised(tx, caller, case, said)
    decided = _settled(tx, caller, case, said, Proposal(item.revision, item.hash, via=LANGGRAPH))
    if decided.status.open:
        raise Conflict("someone else has to agree as well: decide it in the inbox")
    return decided


def _advised(tx: Tx, caller: Principal, case: Case, said: tuple[Verdict, ...]) -> Item:
    """An answer that whoever may start runs may give. Only a person's has grants in it."""
    if is_person(caller):
        carrying.require_settled(tx, case, said)
    outcome = questions.outcome(said) if said else None
    status = ItemStatus(outcome.status) if outcome else ItemStatus.APPROVED
    resolution = outcome.resolution if outcome else Resolution.ANSWERED_ELSEWHERE
    proposal = Proposal(case.item.revision, case.item.hash, via=LANGGRAPH)
    decision = _record(tx, caller, case, said, proposal, closes=True)
    if is_person(caller):
        carrying.grant(tx, case, said, decision.id)
    return _close(tx, caller, case, decision, status, resolution)


def ask_for_revision(
    tx: Tx, caller: Principal, item_id: str, revision: int, hash: str, notes: str, *, grace: timedelta, via: str
) -> Item:
    """Sends it back with notes. An agent that waits in a run hears them now; a request waits for its resubmission."""
    item = found(tx, item_id, lock=True)
    require_open(tx, item, revision, hash)
    case = case_of(tx, item)
    require_right(tx, caller, case)
    if not notes.strip():
        raise InvalidDecision(errors=[{"path": "notes", "message": "say what has to change"}])
    item.moved(ItemStatus.REVISION_REQUESTED)
    proposal = Proposal(revision, hash, notes=notes, grace=grace, via=via)
    verdicts = () if item.held else _feedback(case, notes)
    decision = _record(tx, caller, case, verdicts, proposal, closes=True, kind="revision_request")
    changed = items.change(tx, item, status=ItemStatus.REVISION_REQUESTED, undo_until=_undo_until(tx, grace))
    told = {"decision": decision.id, "revision": item.revision, "notes": notes, "via": via}
    events.append(tx, caller, "item.revision_requested", item.subject, told)
    return changed


def withdraw(tx: Tx, item: Item, resolution: Resolution, reason: str, *, actor: str) -> Item:
    """Ends an item without a decision, and tells the agent the truth: with its own word for no, or, where it knows
    none, by ending the thread."""
    case = case_of(tx, item)
    closed = asking.close(tx, item, resolution, actor, reason)
    if item.held:
        carrying.call_back(tx, closed, {"kind": "withdrawal", "reason": reason})
    elif item.status is ItemStatus.PENDING:
        verdicts = dialects.negative(case.asked, reason)
        value = None if verdicts is None else dialects.encode(case.asked, verdicts)
        asking.deliver(tx, closed, str(item.interrupt_id), value)
    return closed


def require_open(tx: Tx, item: Item, revision: int, hash: str) -> None:
    """The item waits, and for a decision about exactly this."""
    if not item.status.open:
        winner = decisions.closing(tx, item.id)
        if winner is None:
            item.moved(ItemStatus.APPROVED)
        raise AlreadyDecided(f"the item is {item.status}", decision=decision_view(tx, winner))
    _require_in_time(tx, item)
    if (revision, hash) != (item.revision, item.hash):
        raise StaleRevision(revision=item.revision, hash=item.hash)


def _require_pending(tx: Tx, item: Item) -> None:
    """Nobody has said anything to it that is on its way: a revision that was asked for has won like any decision."""
    if item.status is not ItemStatus.PENDING:
        raise AlreadyDecided(f"the item is {item.status}", decision=decision_view(tx, decisions.closing(tx, item.id)))
    _require_in_time(tx, item)


def _require_in_time(tx: Tx, item: Item) -> None:
    """What has expired is over, also in the moment before it is closed."""
    if item.expires_at is not None and item.expires_at <= tx.now():
        replace(item, status=ItemStatus.EXPIRED).moved(ItemStatus.APPROVED)


def _require_given_back(tx: Tx, item: Item) -> None:
    """What was sent back for a revision is decided all the same where it is held, once that cannot be undone."""
    if item.status is not ItemStatus.REVISION_REQUESTED:
        return
    if not item.held:
        raise AwaitingResubmission()
    if item.undo_until is not None and tx.now() < item.undo_until:
        raise AlreadyDecided(
            "a revision was just asked for", decision=decision_view(tx, decisions.closing(tx, item.id))
        )


def encode(case: Case, verdicts: Sequence[Verdict]) -> Json:
    """What the agent will be told, or `InvalidDecision` naming each field that is wrong."""
    with _naming_fields():
        _require_allowed(case, verdicts)
        edited = replace(case.revision, edits=edits_in(verdicts, case.revision))
        return dialects.encode(case.asked, as_asked(verdicts, edited))


@contextmanager
def _naming_fields() -> Iterator[None]:
    """The inbox's own refusal for what does not fit the question; who answers from elsewhere gets theirs there."""
    try:
        yield
    except questions.InvalidDecision as error:
        found = [{"path": one.path, "message": one.message} for one in error.problems]
        raise InvalidDecision(str(error), errors=found) from None


def _require_allowed(case: Case, verdicts: Sequence[Verdict]) -> None:
    allowed = {action.key: action.allowed for action in case.question.actions}
    problems = [
        Problem(f"actions[{index}].verb", f"{one.verb} is not allowed here, only {', '.join(allowed[one.key])}")
        for index, one in enumerate(verdicts)
        if one.key in allowed and one.verb not in allowed[one.key]
    ]
    if problems:
        raise questions.InvalidDecision(problems)


def _edited(tx: Tx, caller: Principal, case: Case, verdicts: Sequence[Verdict]) -> Case:
    """Changed arguments are a revision of their own, and what others said to the one before counts no more. Where it
    stays advisory, whoever may answer may change it."""
    edits = edits_in(verdicts, case.revision)
    revision = replace(case.revision, number=case.item.revision + 1, edits=edits, author=caller.actor, notes=None)
    question = asking.question_of(case.item, revision)
    _require_runnable(tx, case, question, verdicts)
    if edits == case.revision.edits:
        return case
    terms = _edited_terms(tx, case, question)
    if terms.gated or is_person(caller):
        require_right(tx, caller, replace(case, terms=terms))
    times: dict[str, Any] = {}
    if terms.adds_to(case.terms):
        terms = replace(terms, since=tx.now())
        times = asking.timed(terms, tx.now(), case.item.expires_at)
    item = asking.revise(
        tx, case.item, revision, actor=caller.actor, kind="item.edited", **asking.bound(terms), **times
    )
    return Case(item, revision, terms)


def _require_runnable(tx: Tx, case: Case, question: Question, verdicts: Sequence[Verdict]) -> None:
    """An edit may lead to another tool, or to other arguments, only where the policy lets that run at all."""
    actions = {action.key: action for action in question.actions}
    edited = ((index, one) for index, one in enumerate(verdicts) if one.verb is Verb.EDIT and one.key in actions)
    problems = [
        Problem(
            f"actions[{index}].{'name' if one.name else 'args'}",
            f"the policy never lets {actions[one.key].name} run like this",
        )
        for index, one in edited
        if not _may_run(tx, case, question, actions[one.key])
    ]
    if problems:
        raise questions.InvalidDecision(problems)


def _may_run(tx: Tx, case: Case, question: Question, action: Action) -> bool:
    """Whether there is any way to say yes to this one. What the policy says of the others is their own matter."""
    terms = _edited_terms(tx, case, replace(question, actions=(action,)))
    return terms.allows(Verb.APPROVE) or terms.allows(Verb.EDIT)


def _edited_terms(tx: Tx, case: Case, question: Question) -> Terms:
    """Another amount may need other people: what was changed is judged like what is asked."""
    item = case.item
    now = asking.judged(tx, question, graph_id=item.graph_id, requester=item.requester, gated=item.gated)
    return stricter(case.terms, now)


def _settled(tx: Tx, caller: Principal, case: Case, verdicts: tuple[Verdict, ...], proposal: Proposal) -> Item:
    said = carrying.as_revised(verdicts)
    outcome = questions.outcome(as_asked(said, case.revision))
    status = case.item.moved(ItemStatus(outcome.status))
    carrying.require_settled(tx, case, said)
    agreed = _agreed(tx, caller, case, said) if status is ItemStatus.APPROVED else 0
    if not _counts(tx, caller, case):
        return _only_edited(case, verdicts)
    if status is ItemStatus.APPROVED and agreed + 1 < case.terms.approvals:
        return _count_in(tx, caller, case, verdicts, proposal)
    decision = _record(tx, caller, case, verdicts, proposal, closes=True)
    if is_person(caller):
        carrying.grant(tx, case, said, decision.id, wait=proposal.grace)
    return _close(tx, caller, case, decision, status, outcome.resolution, _undo_until(tx, proposal.grace))


def _counts(tx: Tx, caller: Principal, case: Case) -> bool:
    """Under separate duties the word of who has just changed it does not count; they were let in before the change."""
    return not (case.terms.separate_duties and caller.actor in editors(tx, case))


def _agreed(tx: Tx, caller: Principal, case: Case, said: Sequence[Verdict]) -> int:
    """How many others have agreed to the same. The same person twice, or something else, is a conflict."""
    before = decisions.standing(tx, case.item)
    if any(one.actor == caller.actor for one in before):
        raise Conflict("you have agreed already; someone else has to", approvals=len(before))
    for one in before:
        if _outcomes(carrying.as_revised(one.verdicts)) != _outcomes(said):
            raise Conflict("what you say differs from what was agreed to before", decision=decision_view(tx, one))
    return len(before)


def _outcomes(said: Sequence[Verdict]) -> dict[str, Json]:
    """What comes of each action: the reason of a rejection may differ, an answer may not."""
    return {one.key: [one.verb, one.args, one.message if one.verb is Verb.RESPOND else None, one.name] for one in said}


def _only_edited(case: Case, verdicts: Sequence[Verdict]) -> Item:
    """The change stands as a revision for others to decide. Whatever else its author wanted to say would be lost."""
    if any(one.verb not in (Verb.EDIT, Verb.APPROVE) for one in verdicts):
        raise Conflict("who changes this does not decide it: send the changes alone, and let someone else say the rest")
    return case.item


def _count_in(tx: Tx, caller: Principal, case: Case, verdicts: tuple[Verdict, ...], proposal: Proposal) -> Item:
    """One of several who have to agree."""
    decision = _record(tx, caller, case, verdicts, proposal, closes=False)
    agreed = len(decisions.standing(tx, case.item))
    changed = items.change(tx, case.item, approvals=agreed)
    told = {"decision": decision.id, "approvals": agreed, "needed": case.terms.approvals}
    events.append(tx, caller, "item.agreed", case.item.subject, told)
    return changed


def _record(
    tx: Tx,
    caller: Principal,
    case: Case,
    verdicts: tuple[Verdict, ...],
    proposal: Proposal,
    *,
    closes: bool,
    kind: str = "decision",
) -> Decision:
    decision_id = new_id()
    delivery = None
    if closes and proposal.via != LANGGRAPH:
        delivery = carrying.send(
            tx, case, verdicts, notes=proposal.notes, grace=proposal.grace, decision_id=decision_id, kind=kind
        )
    decision = Decision(
        id=decision_id,
        item_id=case.item.id,
        revision=case.item.revision,
        hash=case.item.hash,
        kind=kind,
        verdicts=verdicts,
        notes=proposal.notes,
        actor=caller.actor,
        via=proposal.via,
        standing=True,
        closes=closes,
        delivery_id=delivery,
        at=tx.now(),
    )
    decisions.insert(tx, decision)
    return decision


def _close(
    tx: Tx,
    caller: Principal,
    case: Case,
    decision: Decision,
    status: ItemStatus,
    resolution: Resolution,
    undo_until: datetime | None = None,
) -> Item:
    item = case.item
    closed = items.change(
        tx,
        item,
        status=item.moved(status),
        resolution=resolution,
        approvals=len(decisions.standing(tx, item)),
        decided_at=tx.now(),
        decided_by=caller.actor,
        undo_until=undo_until,
        due_at=None,
        due=None,
    )
    said = [{"key": one.key, "verb": one.verb} for one in decision.verdicts]
    told = {"decision": decision.id, "revision": item.revision, "hash": item.hash, "actions": said}
    told |= {"resolution": resolution, "notes": decision.notes, "via": decision.via}
    events.append(tx, caller, f"item.{status.lower()}", item.subject, told)
    return closed


def _feedback(case: Case, notes: str) -> tuple[Verdict, ...]:
    verdicts = dialects.feedback(case.asked, notes)
    if verdicts is None:
        raise InvalidDecision("this agent cannot be asked for a revision: it knows no way to hear notes")
    return verdicts


def _undo_until(tx: Tx, grace: timedelta) -> datetime | None:
    if not timedelta() <= grace <= LONGEST_GRACE:
        raise Invalid(f"grace_seconds must be between 0 and {LONGEST_GRACE.total_seconds():.0f}")
    return tx.now() + grace if grace else None
