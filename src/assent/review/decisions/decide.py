"""Decides an item: validates a person's verdicts, records the decision and applies its consequences.

Everything here runs in one transaction: the item's compare-and-set, the decision, the grants, the outbox row and the
timeline commit together. A concurrent decider waits for the lock, then finds the item decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from assent.errors import (
    AlreadyDecided,
    AwaitingResubmission,
    Conflict,
    Forbidden,
    Invalid,
    InvalidDecision,
    NotFound,
    Problem,
    StaleRevision,
)
from assent.identity.model.access import Principal
from assent.identity.model.passkeys import Party, Proof
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id
from assent.kernel.store.transaction import Tx
from assent.review import changes, dialects, thread_items
from assent.review.decisions import comments, confirmation, consequences
from assent.review.decisions.confirmation import Options
from assent.review.decisions.consequences import Case, case_of, case_with
from assent.review.decisions.rights import counted, editors, is_person, may_still_decide, require_right
from assent.review.decisions.views import decision_view, masked_parts, with_secrets
from assent.review.model import questions
from assent.review.model.decisions import DECISION, REVISION_REQUEST, Decision
from assent.review.model.items import LONGEST_GRACE, Item, ItemStatus, Revision, as_asked, edits_in
from assent.review.model.lifecycle import Agreed, Decided, Edited, Message, RevisionRequested
from assent.review.model.questions import Action, Question, Resolution, Verb, Verdict
from assent.review.model.search.terms import Terms, stricter
from assent.review.rows import decisions, items, secrets
from assent.review.search import item_terms, item_words

LANGGRAPH = "langgraph"
"""The surface of answers in a run of the LangGraph API: the run itself delivers them."""
MCP = "mcp"
"""The inbox's MCP server. Its callers are programs, with the key of a person."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed decision about the revision that the caller saw. `verb` applies to all actions."""

    revision: int
    hash: str
    verdicts: tuple[Verdict, ...] = ()
    verb: Verb | None = None
    message: str | None = None
    notes: str | None = None
    grace: timedelta = timedelta()
    via: str = "rest"
    passkey: str | None = None
    """The passkey that confirmed it; set here, never by the caller."""

    @property
    def leads_to(self) -> ItemStatus:
        """The status that the decision would lead to."""
        return _leads_to((Verdict("", self.verb),) if self.verb else self.verdicts)

    def spread(self, case: Case) -> tuple[Verdict, ...]:
        """One verdict per named action, or the same one for each."""
        if self.verb is None:
            return _unmasked(tuple(with_secrets(case, verdict) for verdict in self.verdicts))
        if self.verdicts:
            raise InvalidDecision(problems=[Problem("verb", "give one verb for all, or one per action")])
        return _unmasked(
            tuple(Verdict(action.key, self.verb, message=self.message) for action in case.question.actions)
        )


def _leads_to(said: Sequence[Verdict]) -> ItemStatus:
    """An unreadable answer also closes an item."""
    return ItemStatus(questions.outcome(said).status) if said else ItemStatus.APPROVED


def _unmasked(verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
    problems = masked_parts(verdicts)
    if problems:
        raise InvalidDecision(f"{problems[0].path} {problems[0].message}", problems=problems)
    return verdicts


def require_item(tx: Tx, item_id: str, *, lock: bool = False) -> Item:
    item = items.lock(tx, item_id) if lock else items.get(tx, item_id)
    if item is None:
        raise NotFound(f"item {item_id!r} not found")
    return item


def decide(tx: Tx, caller: Principal, item_id: str, proposal: Proposal, proof: Proof | None = None) -> Item:
    """Records the caller's decision. The item closes with it, unless more approvals are needed. `proof` is the
    signature of the caller's passkey for exactly this decision, where the terms require one."""
    item = require_item(tx, item_id, lock=True)
    case, verdicts = _considered(tx, caller, item, proposal, lock=True)
    edited = _edited(tx, caller, case, verdicts)
    _require_way(edited, proposal.via)
    if edited.terms.confirm and confirmation.approves(verdicts):
        what = confirmation.decision(item, verdicts, proposal.notes)
        proposal = replace(proposal, passkey=confirmation.require(tx, caller, item, what, proof))
    return _settled(tx, caller, edited, verdicts, proposal)


def to_confirm(tx: Tx, caller: Principal, item_id: str, proposal: Proposal, party: Party | None) -> Options | None:
    """The WebAuthn options for the signature that this decision needs; None if it needs none. Raises the errors that
    the decision would raise, as far as they are foreseeable."""
    item = require_item(tx, item_id)
    case, verdicts = _considered(tx, caller, item, proposal)
    revision = _revised(caller, case, verdicts)
    terms = case.terms
    if revision is not None:
        terms = _edited_terms(tx, case, dialects.question_of(item, revision))
    elif confirmation.approves(verdicts):
        foreseen(tx, caller, item, proposal)
    if not (terms.confirm and confirmation.approves(verdicts)):
        return None
    return confirmation.ask(tx, caller, item, confirmation.decision(item, verdicts, proposal.notes), party)


def _considered(
    tx: Tx, caller: Principal, item: Item, proposal: Proposal, *, lock: bool = False
) -> tuple[Case, tuple[Verdict, ...]]:
    """Checks that the caller may decide now, and returns the case and one verdict per action."""
    require_open(tx, item, proposal.revision, proposal.hash, to=proposal.leads_to)
    _require_given_back(tx, item)
    case = case_of(tx, item)
    require_right(tx, caller, case, lock=lock)
    _require_way(case, proposal.via)
    verdicts = proposal.spread(case)
    encode(case, verdicts)
    return case, verdicts


def _require_way(case: Case, via: str) -> None:
    """A program may decide with a person's key only what the policy allows."""
    if via == MCP and not case.terms.by_mcp:
        raise Forbidden(
            f"the policy does not allow a decision by MCP: the risk is {case.terms.risk or 'not rated'}",
            hint="a person decides it in the inbox; `mcp` of a policy rule sets the highest risk for programs",
            missing=["mcp"],
            item=case.item.id,
        )


def foreseen(tx: Tx, caller: Principal, item: Item, proposal: Proposal) -> str:
    """The status that a decision would lead to, without making it; raises the errors that it would raise."""
    case, verdicts = _considered(tx, caller, item, proposal)
    status = item.moved(ItemStatus(questions.outcome(verdicts).status))
    if status is ItemStatus.REJECTED:
        return status
    consequences.require_settled(tx, case, verdicts)
    agreed = _agreed(tx, caller, case, consequences.as_revised(verdicts), lock=False)
    return status if agreed + 1 >= case.terms.approvals else item.status


def answered(tx: Tx, caller: Principal, item: Item, verdicts: Sequence[Verdict] | None) -> Item:
    """Records an answer from outside the inbox, which its run delivers. Only a person may answer a gated item, by the
    rules of the inbox, and only if their approval alone is enough."""
    said = tuple(verdicts or ())
    _require_pending(tx, item, _leads_to(said))
    case = case_of(tx, item)
    if case.revision.edits:  # the answer refers to the agent's question, not to the edited revision
        raise StaleRevision(revision=item.revision, hash=item.hash)
    if item.gated:
        require_right(tx, caller, case, lock=True)
        _require_allowed(case, said)
    case = _edited(tx, caller, case, said)
    if case.terms.confirm and confirmation.approves(said):
        confirmation.require(tx, caller, item, confirmation.decision(item, said, None), None)
    if not case.item.gated:
        return _advised(tx, caller, case, said)
    decided = _settled(tx, caller, case, said, Proposal(item.revision, item.hash, via=LANGGRAPH))
    if decided.status.open:
        raise Conflict("another person has to approve as well: decide it in the inbox")
    return decided


def _advised(tx: Tx, caller: Principal, case: Case, said: tuple[Verdict, ...]) -> Item:
    """Closes an advisory item with the answer of a caller of the thread. Only a person's answer issues grants."""
    case = case.with_verdicts(said)
    if is_person(caller):
        consequences.require_settled(tx, case, said)
    outcome = questions.outcome(said) if said else None
    status = ItemStatus(outcome.status) if outcome else ItemStatus.APPROVED
    resolution = outcome.resolution if outcome else Resolution.ANSWERED_ELSEWHERE
    proposal = Proposal(case.item.revision, case.item.hash, via=LANGGRAPH)
    return _close(tx, caller, case, said, said, proposal, status, resolution)


def ask_for_revision(
    tx: Tx, caller: Principal, item_id: str, revision: int, hash: str, notes: str, *, grace: timedelta, via: str
) -> Item:
    """Requests a revision with notes. A waiting run gets them now; a request waits for its resubmission."""
    item = require_item(tx, item_id, lock=True)
    require_open(tx, item, revision, hash, to=ItemStatus.REVISION_REQUESTED)
    case = case_of(tx, item)
    require_right(tx, caller, case)
    _require_way(case, via)
    if not notes.strip():
        raise InvalidDecision(problems=[Problem("notes", "describe the change that is needed")])
    item.moved(ItemStatus.REVISION_REQUESTED)
    proposal = Proposal(revision, hash, notes=notes, grace=grace, via=via)
    said = comments.said_on(tx, item, lambda: case.words) if not item.held else []
    verdicts = () if item.held else _feedback(case, "\n\n".join([notes, *([comments.spelled(said)] if said else [])]))
    decision, message = _decision(tx, caller, case, verdicts, proposal, closes=True, kind=REVISION_REQUEST)
    told = {"decision": decision.id, "revision": item.revision, "notes": case.words.without(notes), "via": via}
    undo_until = _undo_until(tx, grace)
    event = RevisionRequested(decision=decision, undo_until=undo_until, message=message, told=told)
    return changes.apply(tx, caller, item, event)


def withdraw(tx: Tx, item: Item, resolution: Resolution, reason: str, *, actor: str) -> Item:
    """Closes an item without a decision, and notifies the agent: with a rejection in its dialect, or, if the dialect
    has none, by ending the thread."""
    case = case_of(tx, item)
    reason = secrets.known_words(tx, item, actor).without(reason)
    message = None
    if item.held:
        status = ItemStatus.EXPIRED if resolution is Resolution.EXPIRED else ItemStatus.CANCELLED
        message = consequences.callback(tx, case, {"kind": "withdrawal", "status": status, "reason": reason})
    elif item.status is ItemStatus.PENDING:
        verdicts = dialects.negative(case.asked, reason)
        value = None if verdicts is None else dialects.encode(case.asked, verdicts)
        message = thread_items.resumption(item, str(item.interrupt_id), value)
    return thread_items.close(tx, item, resolution, actor, reason, message)


def require_open(tx: Tx, item: Item, revision: int, hash: str, *, to: ItemStatus) -> None:
    """Checks that the item is open and that its revision and hash match. `to` is the status that would follow."""
    if not item.status.open:
        winner = decisions.closing(tx, item.id)
        if winner is None:
            item.moved(to)
        raise AlreadyDecided(f"the item is {item.status}", decision=decision_view(tx, winner))
    _require_in_time(tx, item, to)
    require_seen(item, revision, hash)


def require_seen(item: Item, revision: int, hash: str) -> None:
    """Refuses an approval of anything but the revision that the caller was shown."""
    if (revision, hash) != (item.revision, item.hash):
        raise StaleRevision(revision=item.revision, hash=item.hash)


def _require_pending(tx: Tx, item: Item, to: ItemStatus) -> None:
    """Checks that no decision or revision request is on its way to the agent."""
    if item.status is not ItemStatus.PENDING:
        raise AlreadyDecided(f"the item is {item.status}", decision=decision_view(tx, decisions.closing(tx, item.id)))
    _require_in_time(tx, item, to)


def _require_in_time(tx: Tx, item: Item, to: ItemStatus) -> None:
    """Refuses an expired item, even before it is closed."""
    if item.expires_at is not None and item.expires_at <= tx.now():
        replace(item, status=ItemStatus.EXPIRED).moved(to)


def _require_given_back(tx: Tx, item: Item) -> None:
    """Refuses an item that waits for a revision, unless it is held and the request can no longer be undone."""
    if item.status is not ItemStatus.REVISION_REQUESTED:
        return
    if not item.held:
        raise AwaitingResubmission()
    if item.undo_until is not None and tx.now() < item.undo_until:
        raise AlreadyDecided(
            "a revision was just requested", decision=decision_view(tx, decisions.closing(tx, item.id))
        )


def encode(case: Case, verdicts: Sequence[Verdict]) -> Json:
    """The value that the agent will be sent. Raises `InvalidDecision`, which names each wrong field."""
    _require_allowed(case, verdicts)
    edited = replace(case.revision, edits=edits_in(verdicts, case.revision))
    return dialects.encode(case.asked, as_asked(verdicts, edited))


def _require_allowed(case: Case, verdicts: Sequence[Verdict]) -> None:
    allowed = {action.key: action.allowed for action in case.question.actions}
    problems = [
        Problem(f"actions[{index}].verb", f"{verdict.verb} is not allowed here, only {', '.join(allowed[verdict.key])}")
        for index, verdict in enumerate(verdicts)
        if verdict.key in allowed and verdict.verb not in allowed[verdict.key]
    ]
    if problems:
        raise InvalidDecision(problems=problems)


def _edited(tx: Tx, caller: Principal, case: Case, verdicts: Sequence[Verdict]) -> Case:
    """Edited arguments make a new revision, and earlier approvals do not count for it. While the item stays advisory,
    every caller who may answer may edit."""
    revision = _revised(caller, case, verdicts)
    question = dialects.question_of(case.item, revision or case.revision)
    _require_runnable(tx, case, question, verdicts)
    if revision is None:
        return case
    terms = _edited_terms(tx, case, question)
    if terms.gated or is_person(caller):
        require_right(tx, caller, replace(case, terms=terms))
    times: dict[str, Any] = {}
    if terms.adds_to(case.terms):
        terms = replace(terms, since=tx.now())
        times = item_terms.timed(terms, tx.now(), case.item.expires_at)
    facts = {**item_words.words(question, terms, case.words), **item_terms.bound(terms), **times}
    item = thread_items.revise(tx, case.item, Edited(revision=revision, facts=facts), actor=caller.actor)
    item_words.learn(tx, item)
    return case_with(tx, item, revision, terms)


def _revised(caller: Principal, case: Case, verdicts: Sequence[Verdict]) -> Revision | None:
    """The revision that the edits among these verdicts would make; None without edits."""
    edits = edits_in(verdicts, case.revision)
    if edits == case.revision.edits:
        return None
    return replace(case.revision, number=case.item.revision + 1, edits=edits, author=caller.actor, notes=None)


def _require_runnable(tx: Tx, case: Case, question: Question, verdicts: Sequence[Verdict]) -> None:
    """An edit may change the tool or the arguments only to a call that the policy does not forbid."""
    actions = {action.key: action for action in question.actions}
    edited = (
        (index, verdict)
        for index, verdict in enumerate(verdicts)
        if verdict.verb is Verb.EDIT and verdict.key in actions
    )
    problems = [
        Problem(
            f"actions[{index}].{'name' if verdict.name else 'args'}",
            f"the policy forbids {actions[verdict.key].name} with these arguments",
        )
        for index, verdict in edited
        if not _may_run(tx, case, question, actions[verdict.key])
    ]
    if problems:
        raise InvalidDecision(problems=problems)


def _may_run(tx: Tx, case: Case, question: Question, action: Action) -> bool:
    """Whether this action can be approved at all, regardless of the others."""
    terms = _edited_terms(tx, case, replace(question, actions=(action,)))
    return terms.allows(Verb.APPROVE) or terms.allows(Verb.EDIT)


def _edited_terms(tx: Tx, case: Case, question: Question) -> Terms:
    """Judges the edited question like a new one: another amount may need other deciders."""
    item = case.item
    now = item_terms.judged(tx, question, graph_id=item.graph_id, requester=item.requester, gated=item.gated)
    return stricter(case.terms, now)


def _settled(tx: Tx, caller: Principal, case: Case, verdicts: tuple[Verdict, ...], proposal: Proposal) -> Item:
    case, revised = case.with_verdicts(verdicts), consequences.as_revised(verdicts)
    outcome = questions.outcome(as_asked(revised, case.revision))
    status = case.item.moved(ItemStatus(outcome.status))
    consequences.require_settled(tx, case, revised)
    agreed = _agreed(tx, caller, case, revised, lock=True) if status is ItemStatus.APPROVED else 0
    if not _counts(tx, caller, case):
        return _only_edited(case, verdicts)
    if status is ItemStatus.APPROVED and agreed + 1 < case.terms.approvals:
        return _count_in(tx, caller, case, verdicts, proposal)
    return _close(tx, caller, case, verdicts, revised, proposal, status, outcome.resolution)


def _counts(tx: Tx, caller: Principal, case: Case) -> bool:
    """Under separate duties, the approval of an editor does not count; the check of the right ran before the edit."""
    return not (case.terms.separate_duties and caller.actor in editors(tx, case))


def _agreed(tx: Tx, caller: Principal, case: Case, said: Sequence[Verdict], *, lock: bool) -> int:
    """The number of other valid approvals of the same verdicts. A second approval by the same person, or different
    verdicts, is a conflict."""
    before = counted(tx, case, lock=lock)
    if any(decision.actor == caller.actor for decision in before):
        raise Conflict("you have already approved this; another person has to approve", approvals=len(before))
    for decision in before:
        if _outcomes(consequences.as_revised(decision.verdicts)) != _outcomes(said):
            raise Conflict(
                "your decision differs from an earlier approval; decide the same or reject",
                decision=decision_view(tx, decision),
            )
    return len(before)


def _outcomes(said: Sequence[Verdict]) -> dict[str, Json]:
    """The effect on each action: the reason of a rejection may differ, an answer may not."""
    return {
        verdict.key: [
            verdict.verb,
            verdict.args,
            verdict.message if verdict.verb is Verb.RESPOND else None,
            verdict.name,
        ]
        for verdict in said
    }


def _only_edited(case: Case, verdicts: Sequence[Verdict]) -> Item:
    """Keeps the edit as a revision for others to decide. Other verdicts of its author would be lost, so they are
    refused."""
    if any(verdict.verb not in (Verb.EDIT, Verb.APPROVE) for verdict in verdicts):
        raise Conflict("an editor may not decide this item: send the edits alone, and let another person decide")
    return case.item


def _count_in(tx: Tx, caller: Principal, case: Case, verdicts: tuple[Verdict, ...], proposal: Proposal) -> Item:
    """Records one of several required approvals."""
    decision, _ = _decision(tx, caller, case, verdicts, proposal, closes=False)
    approvals = _approvals(tx, caller, case)
    details = {"decision": decision.id, "approvals": approvals, "needed": case.terms.approvals}
    details |= {"passkey": proposal.passkey} if proposal.passkey else {}
    agreed = changes.apply(tx, caller, case.item, Agreed(decision=decision, approvals=approvals, told=details))
    _learn_from(tx, agreed, verdicts)
    return agreed


def _close(
    tx: Tx,
    caller: Principal,
    case: Case,
    verdicts: tuple[Verdict, ...],
    said: Sequence[Verdict],
    proposal: Proposal,
    status: ItemStatus,
    resolution: Resolution,
) -> Item:
    """Closes the item with the winning decision. Only a person's decision issues grants."""
    decision, message = _decision(tx, caller, case, verdicts, proposal, closes=True)
    event = Decided(
        decision=decision,
        status=status,
        resolution=resolution,
        approvals=_approvals(tx, caller, case),
        undo_until=_undo_until(tx, proposal.grace),
        permits=consequences.permits(tx, case, said, decision.id, wait=proposal.grace) if is_person(caller) else (),
        message=message,
        told=_told(case, decision, resolution, proposal.passkey),
    )
    closed = changes.apply(tx, caller, case.item, event)
    _learn_from(tx, closed, verdicts)
    if proposal.via == LANGGRAPH and case.item.thread_id is not None:
        decisions.note_contribution(tx, decision, case.item.thread_id)
    return closed


def _learn_from(tx: Tx, item: Item, verdicts: Sequence[Verdict]) -> None:
    """Records new secrets: arguments and answers that other texts of the thread must not repeat."""
    if any(verdict.args is not None or verdict.verb is Verb.RESPOND for verdict in verdicts):
        item_words.learn(tx, item)


def _decision(
    tx: Tx,
    caller: Principal,
    case: Case,
    verdicts: tuple[Verdict, ...],
    proposal: Proposal,
    *,
    closes: bool,
    kind: str = DECISION,
) -> tuple[Decision, Message | None]:
    """The decision, and its message to the agent. A run of the LangGraph API delivers its own answer."""
    decision_id, message = new_id(), None
    if closes and proposal.via != LANGGRAPH:
        message = consequences.message(
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
        delivery_id=message.id if message else None,
        at=tx.now(),
    )
    return decision, message


def _approvals(tx: Tx, caller: Principal, case: Case) -> int:
    """The number of valid approvals, including the caller's."""
    return len(counted(tx, case)) + may_still_decide(tx, caller.actor, case)


def _told(case: Case, decision: Decision, resolution: Resolution, passkey: str | None) -> dict[str, Any]:
    actions = [{"key": verdict.key, "verb": verdict.verb} for verdict in decision.verdicts]
    details = {"decision": decision.id, "revision": case.item.revision, "hash": case.item.hash, "actions": actions}
    notes = decision.notes and case.words.without(decision.notes)
    details |= {"resolution": resolution, "notes": notes, "via": decision.via}
    return details | ({"passkey": passkey} if passkey else {})


def _feedback(case: Case, notes: str) -> tuple[Verdict, ...]:
    verdicts = dialects.feedback(case.asked, notes)
    if verdicts is None:
        raise InvalidDecision("this agent does not support revision requests; approve, reject or comment instead")
    return verdicts


def _undo_until(tx: Tx, grace: timedelta) -> datetime | None:
    if not timedelta() <= grace <= LONGEST_GRACE:
        raise Invalid(f"grace_seconds must be between 0 and {LONGEST_GRACE.total_seconds():.0f}")
    return tx.now() + grace if grace else None
