"""The life of an item as a pure function, driven by chance against a ledger of what its effects add up to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from assent.errors import InvalidTransition
from assent.identity.model.access import Agent
from assent.review.dialects import recognise
from assent.review.model import lifecycle
from assent.review.model.decisions import DECISION, REVISION_REQUEST, Decision
from assent.review.model.items import TRANSITIONS, Due, Execution, Item, ItemStatus, Revision
from assent.review.model.lifecycle import (
    LIFE,
    AddRevision,
    Agreed,
    AskedAgain,
    Closed,
    Decided,
    Deliver,
    DismissDecisions,
    Doubted,
    DropDoubts,
    Edited,
    Escalated,
    Event,
    Executed,
    IssueGrants,
    Judged,
    Lapsed,
    Message,
    Overtaken,
    Permit,
    Recalled,
    RecordDecision,
    Recounted,
    Reminded,
    Reopened,
    Resubmitted,
    RevisionRequested,
    RevokeGrants,
    Settled,
    Step,
    Tell,
    Unasked,
    Unobserved,
    step,
)
from assent.review.model.policies import from_json
from assent.review.model.questions import Interrupt, Question, Resolution, Verb, Verdict
from assent.review.model.search.terms import terms_of

NOW = datetime(2026, 11, 18, 9, tzinfo=UTC)
RULE = {"name": "two", "then": "ask", "approvals": 2, "remind_after": "1h", "deadline": "2h"}
POLICY = from_json({"rules": [{**RULE, "after_deadline": "escalate", "escalate_to": {"roles": ["admin"]}}]})
STEPS = 20_000
OTHERS = [Recalled(), Reminded(), Escalated(recipient="ben"), Unobserved(), Judged(facts={"risk": "high"})]


def question() -> Question:
    call = {"call_id": "c", "tool_name": "pay", "arguments": {"n": 1}}
    return recognise(Interrupt("i", {"kind": "confirmation", "tool_calls": [call]}))


def new_item(**fields: Any) -> Item:
    terms = terms_of(POLICY, 1, question(), graph=None, agent=Agent(), tenant="t", gated=True)
    known = dict.fromkeys(Item.__slots__)
    known |= {"id": "i", "status": ItemStatus.PENDING, "revision": 1, "hash": Revision(1, 1).hash, "type": "tool"}
    known |= {"dialect": "tool_approval", "title": "pay", "summary": "", "gated": True, "policy": terms.to_json()}
    known |= {"deployment": "local", "reworded": False, "requester": "agent:a", "approvals": 0}
    known |= {"created_at": NOW, "updated_at": NOW, "due_at": NOW + timedelta(hours=1), "due": Due.REMIND}
    return Item(**{**known, **fields})


def decision(
    item: Item, number: int, *, closes: bool = True, kind: str = DECISION, delivery: str | None = None
) -> Decision:
    return Decision(
        id=f"d{number}",
        item_id=item.id,
        revision=item.revision,
        hash=item.hash,
        kind=kind,
        verdicts=(Verdict("0", Verb.APPROVE),),
        notes=None,
        actor="reviewer:ana",
        via="web",
        standing=True,
        closes=closes,
        delivery_id=delivery,
        at=NOW,
    )


@dataclass
class Ledger:
    """What the effects of all steps add up to."""

    standing: dict[str, Decision] = field(default_factory=dict)
    unused: int = 0
    revisions: list[int] = field(default_factory=lambda: [1])
    sent: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def add(self, taken: Step) -> None:
        for effect in taken.effects:
            match effect:
                case AddRevision(revision):
                    self.revisions.append(revision.number)
                case RecordDecision(made):
                    self.standing[made.id] = made
                case DismissDecisions(only, closing):
                    left = self.standing.values()
                    kept = (
                        [row for row in left if row.id != only]
                        if only
                        else [one for one in left if closing and not one.closes]
                    )
                    self.standing = {memory_item.id: memory_item for memory_item in kept}
                case IssueGrants(permits):
                    self.unused += len(permits)
                case RevokeGrants():
                    self.unused = 0
                case Deliver(message):
                    self.sent.append(message.id)
                case Tell(kind, _):
                    self.told.append(kind)
                case DropDoubts():
                    pass

    def _dismiss(self, only: str | None, closing: bool) -> None:
        def dismissed(one: Decision) -> bool:
            return one.id == only if only else one.closes or not closing

        self.standing = {key: one for key, one in self.standing.items() if not dismissed(one)}


class Life(RuleBasedStateMachine):
    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.item, self.now, self.number = new_item(), NOW, 0
        self.ledger = Ledger()

    def take(self, event: Event) -> bool:
        """Takes the step where the table allows it, and proves that it is refused where not."""
        type(self).steps += 1
        before, allowed = self.item, self.item.status in LIFE[type(event)].starts
        try:
            taken = step(self.item, event, self.now)
        except InvalidTransition:
            assert not allowed
            return False
        assert allowed
        ends = LIFE[type(event)].ends or (before.status,)
        assert taken.item.status in ends
        assert sum(isinstance(effect, Tell) for effect in taken.effects) <= 1
        self.item = taken.item
        self.ledger.add(taken)
        return True

    def next(self) -> int:
        self.number += 1
        return self.number

    def message(self) -> Message:
        return Message(f"m{self.next()}", "resume", "thread:t", {})

    def permit(self, made: Decision) -> Permit:
        return Permit(made.id, "t", "c", "pay", "h", self.now, self.now + timedelta(minutes=15))

    @rule(kind=st.sampled_from([AskedAgain, Resubmitted, Edited]))
    def revise(self, kind: type[AskedAgain | Resubmitted | Edited]) -> None:
        revision = Revision(self.item.revision + 1, self.next())
        if self.take(kind(revision=revision, facts={"title": "other"})):
            assert (self.item.hash, self.item.approvals, self.ledger.standing) == (revision.hash, 0, {})

    @rule()
    def agree(self) -> None:
        made = decision(self.item, self.next(), closes=False)
        self.take(Agreed(decision=made, approvals=self.item.approvals + 1, told={}))

    @rule(status=st.sampled_from([ItemStatus.APPROVED, ItemStatus.REJECTED]), grace=st.booleans())
    def decide(self, status: ItemStatus, grace: bool) -> None:
        message = self.message()
        made = decision(self.item, self.next(), delivery=message.id)
        approved = status is ItemStatus.APPROVED
        event = Decided(
            decision=made,
            status=status,
            resolution=Resolution.ACCEPTED if approved else Resolution.REJECTED,
            approvals=1,
            undo_until=self.now + timedelta(seconds=5) if grace else None,
            permits=(self.permit(made),) if approved else (),
            message=message,
            told={},
        )
        if self.take(event):
            assert self.item.decided_by == "reviewer:ana"
            assert self.ledger.sent[-1] == made.delivery_id

    @rule()
    def request_revision(self) -> None:
        made = decision(self.item, self.next(), kind=REVISION_REQUEST)
        self.take(RevisionRequested(decision=made, undo_until=None, message=None, told={}))

    @rule()
    def reopen(self) -> None:
        closing = next(
            (standing_decision.id for standing_decision in self.ledger.standing.values() if standing_decision.closes),
            "gone",
        )
        if self.take(Reopened(decision_id=closing, approvals=0)):
            assert (self.item.decided_by, self.item.resolution, self.item.execution) == (None, None, None)
            assert self.item.due_at is not None

    @rule()
    def retract(self) -> None:
        agreed = next(
            (
                standing_decision.id
                for standing_decision in self.ledger.standing.values()
                if not standing_decision.closes
            ),
            "gone",
        )
        self.take(Recounted(decision_id=agreed, approvals=0))

    @rule(event=st.sampled_from([Closed(resolution=Resolution.SUPERSEDED), Lapsed()]))
    def close(self, event: Closed) -> None:
        self.take(event)

    @rule(begun=st.booleans())
    def overtake(self, begun: bool) -> None:
        self.take(Overtaken(decision_id="d", resolution=Resolution.SUPERSEDED, begun=begun))

    @rule(
        event=st.sampled_from(
            [Recalled(), Reminded(), Escalated(recipient="ben"), Unobserved(), Judged(facts={"risk": "high"})]
        )
    )
    def something_else(self, event: Event) -> None:
        self.take(event)

    @rule(execution=st.sampled_from([Execution.STARTED, Execution.DONE, Execution.FAILED]), others=st.booleans())
    def execute(self, execution: Execution, others: bool) -> None:
        before = self.item
        self.take(Executed(execution=execution, others=others))
        if before.execution is Execution.IN_DOUBT and (others or before.doubt_id):
            assert self.item.execution is Execution.IN_DOUBT, "only a person ends a doubt that was asked about"
        elif execution is Execution.STARTED:
            self.ledger.unused = max(self.ledger.unused - 1, 0)

    @rule(asked=st.booleans())
    def doubt(self, asked: bool) -> None:
        self.take(Doubted(asked_in="q" if asked else None, told={}))
        assert self.item.execution is Execution.IN_DOUBT

    @rule(others=st.booleans())
    def settle(self, others: bool) -> None:
        self.take(Settled(execution=Execution.DONE, others=others, message=self.message(), told={}))
        assert (self.item.execution is Execution.IN_DOUBT) == others

    @rule()
    def leave(self) -> None:
        self.take(Unasked(resolution=Resolution.THREAD_ENDED))

    @rule(minutes=st.integers(1, 90))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @invariant()
    def an_open_item_has_no_unused_grant(self) -> None:
        assert not (self.item.status.open and self.ledger.unused)

    @invariant()
    def one_decision_closes(self) -> None:
        closing = [standing_decision for standing_decision in self.ledger.standing.values() if standing_decision.closes]
        assert len(closing) <= 1
        if self.item.status is ItemStatus.PENDING:
            assert closing == []

    @invariant()
    def revisions_count_up(self) -> None:
        assert self.ledger.revisions == list(range(1, self.item.revision + 1))

    @invariant()
    def a_closed_item_has_no_deadline(self) -> None:
        assert self.item.status.open or self.item.due_at is None


def drive(machine: type[Life]) -> None:
    machine.steps = 0
    chance = settings(
        max_examples=600,
        stateful_step_count=50,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chance)


@pytest.mark.promise("P2", "P4")
def test_random_event_sequences_keep_the_invariants() -> None:
    drive(Life)
    assert Life.steps >= STEPS


@pytest.mark.parametrize("event", [Reopened, Closed])
def test_control_a_step_that_leaves_grants_is_noticed(event: type, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = LIFE[event]

    def without_revoking(item: Item, happened: Any, now: datetime) -> Step:
        taken = rule.follow(item, happened, now)
        return Step(taken.item, tuple(effect for effect in taken.effects if not isinstance(effect, RevokeGrants)))

    def reopening(item: Item, happened: Any, now: datetime) -> Step:
        taken = without_revoking(item, happened, now)
        return Step(replace(taken.item, status=ItemStatus.PENDING), taken.effects)

    broken = rule._replace(follow=without_revoking if event is Reopened else reopening)
    monkeypatch.setattr(lifecycle, "LIFE", {**LIFE, event: broken})
    with pytest.raises(AssertionError):
        drive(type("Broken", (Life,), {}))


def test_every_event_has_a_rule_and_every_rule_an_event() -> None:
    assert set(LIFE) == set(Event.__args__)


def test_rules_follow_the_allowed_transitions() -> None:
    """But for undoing, which reopens what a decision has closed."""
    rules = (rule for event, rule in LIFE.items() if event is not Reopened)
    steps = {(start, end) for rule in rules for start in rule.starts for end in rule.ends if start is not end}
    assert steps == {(start, end) for start, ends in TRANSITIONS.items() for end in ends}


def test_diagram_in_the_docs_matches_the_transition_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "lifecycle.md").read_text("utf-8")
    assert f"```mermaid\n{lifecycle.diagram()}\n```" in page
