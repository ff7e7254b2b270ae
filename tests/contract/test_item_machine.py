"""Items against a tiny model of them: whatever people, agents, time and restarts do, in whatever order, the store says
what the model says, nothing is decided or run twice, and the timeline tells each change once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError

from assent.audit.service import Audit
from assent.errors import AssentError, Conflict
from assent.identity.model.access import operator
from assent.kernel import events
from assent.kernel.store.tables import TENANT, deliveries
from assent.kernel.store.tables import items as item_table
from assent.kernel.store.transaction import Tx
from assent.outbox.model import DeliveryStatus
from assent.review import deadlines, requests, thread_items
from assent.review.decisions import decide as deciding
from assent.review.decisions import undo as undoing
from assent.review.model.grants import Call, Grant, Passing
from assent.review.model.policies import from_json
from assent.review.model.questions import Verb, Verdict
from assent.review.requests import Request
from assent.review.rows import decisions, grants, items, policies
from tests.contract.asks import agent, confirmation, person, wait_for
from tests.contract.stores import both_databases, new_store
from tests.scoreboard import Count, RecordScore

PEOPLE = ("ana", "ben", "cleo")
STEPS = 40
TWO = {"rules": [{"name": "two", "then": "ask", "tool": "two", "approvals": 2}]}
WEEK = 7 * 24 * 3600
TTL = 15 * 60
OPEN = ("PENDING", "REVISION_REQUESTED")
_tenants = itertools.count()


@dataclass
class Permit:
    """What the model knows of a grant. Times are seconds since the machine began."""

    args: int
    begins: int
    status: str = "granted"
    task: str | None = None
    starts: int = 0

    def usable(self, now: int) -> bool:
        return self.status == "granted" and self.begins <= now < self.begins + TTL


@dataclass
class Place:
    """A thread that asks about one call."""

    id: str
    tool: str
    args: int
    waits: bool = True
    permits: list[Permit] = field(default_factory=list)

    def revoke(self) -> None:
        """It is asked again: what was allowed and not used is not any more."""
        for permit in self.permits:
            permit.status = "revoked" if permit.status == "granted" else permit.status


@dataclass
class Model:
    """What is known of an item. `place` is None where it was requested through the API."""

    id: str
    tool: str
    place: Place | None
    args: int
    born: int
    status: str = "PENDING"
    revision: int = 1
    agreed: set[str] = field(default_factory=set)
    winner: str | None = None
    undo_until: int | None = None
    sent_back: str | None = None
    on_its_way: list[int] = field(default_factory=list)
    edited: bool = False
    before: int | None = None
    """What stood there before the edit that came with the decision."""

    @property
    def open(self) -> bool:
        return self.status in OPEN

    @property
    def needed(self) -> int:
        return 2 if self.tool == "two" else 1

    def expired(self, now: int) -> bool:
        return now >= self.born + WEEK

    def decidable(self, now: int) -> bool:
        if not self.open or self.expired(now):
            return False
        if self.status == "PENDING":
            return True
        return self.place is None and not (self.sent_back and self.undo_until is not None and now < self.undo_until)


class Items(RuleBasedStateMachine):
    database = ""
    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.tenant = f"machine{next(_tenants)}"
        self.agent = agent(self.tenant)
        self.now = 0
        self.models: list[Model] = []
        self.places: list[Place] = []
        self.told = 0
        self.serial = itertools.count(1)
        self.store = new_store(self.database)
        self.loop.run(self.store.open())

    # Tools of the machine itself

    def write(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        type(self).steps += 1
        return self.loop.run(self.store.write(self.tenant, function, *args, **kwargs))

    def read(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.loop.run(self.store.read(self.tenant, function, *args))

    def attempt(self, may: bool, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Does it where the model says that it can be done; where not, it must be refused as a conflict."""
        try:
            done = self.write(function, *args, **kwargs)
        except Conflict:
            assert not may, "refused, though the model allows it"
            return None
        assert may, "done, though the model refuses it"
        return done

    def chosen(self, number: int) -> Model:
        return self.models[number % len(self.models)]

    def stored(self, model: Model) -> Any:
        return self.read(items.get, model.id)

    def add(self, item: Any, tool: str, place: Place | None, args: int) -> None:
        self.models.append(Model(item.id, tool, place, args, self.now))
        self.told += 1

    # Rules

    @initialize()
    def begin(self) -> None:
        self.write(policies.put, from_json(TWO), source="test", actor="system")

    @rule(tool=st.sampled_from(["one", "two"]))
    def request(self, tool: str) -> None:
        args = next(self.serial)
        asked = Request("t", "title", actions=({"name": tool, "args": {"n": args}},))
        item, _ = self.write(requests.create, self.agent, asked)
        self.add(item, tool, None, args)

    @rule(tool=st.sampled_from(["one", "two"]))
    def ask(self, tool: str) -> None:
        place = Place(f"{self.tenant}-{len(self.places)}", tool, next(self.serial))
        self.places.append(place)
        [item] = self._wait(place)
        self.add(item, tool, place, place.args)

    @rule(grace=st.sampled_from([0, 0, 60]), then=st.sampled_from(["", "undo", "call", "call twice"]))
    def approve(self, grace: int, then: str) -> None:
        """What chance alone would do too seldom: asked, approved, and something comes of it."""
        self.ask("one")
        latest, place = len(self.models) - 1, len(self.places) - 1
        self.decide(latest, "ana", Verb.APPROVE, grace, False)
        if then == "undo":
            self.undo(latest, "ana")
        for _ in range(then.count("call") + then.count("twice")):
            self.call(place, False, "a")

    @precondition(lambda self: self.models)
    @rule(
        number=st.integers(0, 99),
        who=st.sampled_from(PEOPLE),
        verb=st.sampled_from([Verb.APPROVE, Verb.APPROVE, Verb.EDIT, Verb.REJECT]),
        grace=st.sampled_from([0, 0, 60]),
        stale=st.sampled_from([False, False, False, True]),
    )
    def decide(self, number: int, who: str, verb: Verb, grace: int, stale: bool) -> None:
        model = self.chosen(number)
        item = self.stored(model)
        args = next(self.serial)
        parts: dict[Verb, dict[str, Any]] = {Verb.EDIT: {"args": {"n": args}}, Verb.REJECT: {"message": "no"}}
        verdict = Verdict("0", verb, **parts.get(verb, {}))
        said = deciding.Proposal(item.revision + stale, item.hash, verdicts=(verdict,), grace=timedelta(seconds=grace))
        twice = verb is Verb.APPROVE and who in model.agreed
        may = model.decidable(self.now) and not stale and not twice
        if self.attempt(may, deciding.decide, person(who, self.tenant), model.id, said) is None:
            return
        model.sent_back, model.before = None, model.args if verb is Verb.EDIT else None
        if verb is Verb.EDIT:
            model.revision, model.args, model.agreed, model.edited = model.revision + 1, args, set(), True
            self.told += 1
        self.told += 1
        self._settle(model, who, rejected=verb is Verb.REJECT, grace=grace)

    def _settle(self, model: Model, who: str, *, rejected: bool, grace: int) -> None:
        model.agreed.add(who)
        if not rejected and len(model.agreed) < model.needed:
            return
        model.status = "REJECTED" if rejected else "APPROVED"
        model.winner, model.undo_until = who, self.now + grace if grace else None
        if model.place is not None:
            model.on_its_way.append(self.now + grace)
            if not rejected:
                model.place.permits.append(Permit(model.args, self.now + grace))

    @precondition(lambda self: self.models)
    @rule(number=st.integers(0, 99), who=st.sampled_from(PEOPLE))
    def undo(self, number: int, who: str) -> None:
        model = self.chosen(number)
        author = model.winner or model.sent_back
        in_time = model.undo_until is not None and self.now < model.undo_until
        asked = model.place is None or model.place.waits
        may = author == who and in_time and asked
        try:
            self.write(undoing.undo, person(who, self.tenant), model.id)
        except AssentError:
            assert not may
            return
        assert may
        if model.winner and model.status == "APPROVED" and model.place is not None:
            model.place.permits[-1].status = "revoked"
        if model.place is not None:
            model.on_its_way.pop()
        model.status, model.winner, model.sent_back, model.undo_until, model.agreed = "PENDING", None, None, None, set()
        self.told += 1
        if model.before is not None:
            model.revision, model.args, model.before = model.revision + 1, model.before, None
            self.told += 1

    @precondition(lambda self: self.models)
    @rule(number=st.integers(0, 99), who=st.sampled_from(PEOPLE), grace=st.sampled_from([0, 60]))
    def ask_for_revision(self, number: int, who: str, grace: int) -> None:
        model = self.chosen(number)
        item = self.stored(model)
        may = model.status == "PENDING" and not model.expired(self.now)
        caller, wait = person(who, self.tenant), timedelta(seconds=grace)
        if self.attempt(
            may, deciding.ask_for_revision, caller, model.id, item.revision, item.hash, "n", grace=wait, via="rest"
        ):
            model.status, model.sent_back, model.before = "REVISION_REQUESTED", who, None
            model.undo_until = self.now + grace if grace else None
            self.told += 1
            if model.place is not None:
                model.on_its_way.append(self.now + grace)

    @precondition(lambda self: self.models)
    @rule(number=st.integers(0, 99))
    def resubmit(self, number: int) -> None:
        model = self.chosen(number)
        args = next(self.serial)
        changes = {"actions": [{"name": model.tool, "args": {"n": args}}]}
        may = model.place is None and model.status == "REVISION_REQUESTED"
        if self.attempt(may, requests.resubmit, self.agent, model.id, changes):
            self._revised(model, args)

    def _revised(self, model: Model, args: int) -> None:
        model.status, model.revision, model.args = "PENDING", model.revision + 1, args
        model.agreed, model.sent_back, model.edited = set(), None, False
        self.told += 1

    @precondition(lambda self: self.models)
    @rule(number=st.integers(0, 99))
    def cancel(self, number: int) -> None:
        model = self.chosen(number)
        caller = person("ana", self.tenant)
        if self.attempt(model.open, requests.cancel, caller, model.id, "withdrawn"):
            self._withdrawn(model, "CANCELLED")

    def _withdrawn(self, model: Model, status: str) -> None:
        if model.place is not None and model.status == "PENDING":
            model.on_its_way.append(self.now)
        model.status, model.undo_until = status, None
        self.told += 1

    @precondition(lambda self: self.places)
    @rule(number=st.integers(0, 99), changed=st.booleans())
    def ask_again(self, number: int, changed: bool) -> None:
        """The thread stops at the same question once more, or the agent asks something else under its id."""
        place = self.places[number % len(self.places)]
        latest = next(model for model in reversed(self.models) if model.place is place)
        under_way = bool(latest.on_its_way)
        if changed:
            place.args = next(self.serial)
        waiting = self._wait(place)
        if not latest.open:
            if not under_way:
                [item] = waiting
                assert item.follows == latest.id
                self.add(item, place.tool, place, place.args)
                place.revoke()
            return
        if changed or (latest.status == "REVISION_REQUESTED" and not under_way):
            self._revised(latest, place.args)

    def _wait(self, place: Place) -> Any:
        place.waits = True
        question = confirmation(f"call-{place.id}", place.tool, {"n": place.args})
        return self.write(wait_for, place.id, asked=question)

    @precondition(lambda self: self.places)
    @rule(number=st.integers(0, 99))
    def end_thread(self, number: int) -> None:
        place = self.places[number % len(self.places)]
        self.write(wait_for, place.id)
        place.waits = False
        for model in self.models:
            if model.place is place and model.open:
                model.status, model.undo_until = "CANCELLED", None
                self.told += 1

    @rule(seconds=st.sampled_from([30, 30, 60, 60, TTL, WEEK]))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        self.store.clock_offset = timedelta(seconds=self.now)

    @precondition(lambda self: self.models)
    @rule(number=st.integers(0, 99))
    def tick(self, number: int) -> None:
        model = self.chosen(number)
        self.write(deadlines.act, model.id)
        if model.open and model.expired(self.now):
            self._withdrawn(model, "EXPIRED")

    @rule()
    def deliver(self) -> None:
        self.write(_deliver)
        for model in self.models:
            model.on_its_way = [due for due in model.on_its_way if due > self.now]

    @precondition(lambda self: self.places)
    @rule(number=st.integers(0, 99), other=st.booleans(), task=st.sampled_from(["a", "b"]))
    def call(self, number: int, other: bool, task: str) -> None:
        """The agent makes its call: the one that was asked about last, or one that nobody ever saw."""
        place = self.places[number % len(self.places)]
        known = [permit.args for permit in place.permits]
        args = -1 if other else (known[number % len(known)] if known else place.args)
        call = Call(place.id, f"call-{place.id}", place.tool, {"n": args}, task)
        passed = self.write(grants.consume, call, None)
        assert passed.passing == self._foreseen(place, args, task)

    def _foreseen(self, place: Place, args: int, task: str) -> Passing:
        agreed = [permit for permit in reversed(place.permits) if permit.args == args]
        ready = next((permit for permit in agreed if permit.usable(self.now)), None)
        if ready is not None:
            ready.status, ready.task, ready.starts = "started", task, ready.starts + 1
            assert ready.starts == 1
            self.told += 1
            return Passing.GO
        latest = agreed[0] if agreed else None
        if latest is None or latest.task != task or latest.status in ("granted", "revoked"):
            return Passing.ASK
        if latest.status == "done":
            return Passing.REPEAT
        self.told += 1
        return Passing.IN_DOUBT

    @precondition(lambda self: any(permit.status == "started" for place in self.places for permit in place.permits))
    @rule()
    def finish(self) -> None:
        for model in self.models:
            for grant in self.read(grants.of_item, model.id):
                if grant.status == "started":
                    self.write(grants.finish, grant.id, {"ok": True}, None)
                    self.told += 1
        for permit in (permit for place in self.places for permit in place.permits):
            permit.status = "done" if permit.status == "started" else permit.status

    @rule()
    def restart(self) -> None:
        self.loop.run(self.store.close())
        self.store = new_store(self.database)
        self.loop.run(self.store.open())
        self.store.clock_offset = timedelta(seconds=self.now)

    # What always holds

    @invariant()
    def the_store_says_what_the_model_says(self) -> None:
        survey = self.read(_survey, [model.id for model in self.models])
        assert survey["told"] == self.told, "each change is told exactly once"
        assert survey["count"] == len(self.models)
        assert survey["most open"] <= 1
        for model, (item, said, permits) in zip(self.models, survey["items"], strict=True):
            assert (item.status, item.revision) == (model.status, model.revision)
            if model.status in OPEN:
                assert item.approvals == len(model.agreed)
            standing = [one for one in said if one.standing and one.closes]
            assert len(standing) <= 1, "at most one decision closes it"
            if model.winner:
                assert standing[0].actor == f"reviewer:{model.winner}"
            if model.status != "APPROVED":
                assert all(permit.status != "granted" for permit in permits), "nothing is granted that is not approved"

    def teardown(self) -> None:
        try:
            verdict = self.loop.run(Audit(self.store).verify(operator(self.tenant)))
            assert verdict.breaks == []
        finally:
            self.loop.run(self.store.close())
            self.loop.close()


def _survey(tx: Tx, ids: list[str]) -> dict[str, Any]:
    rows = tx.all(select(item_table).where(item_table.c.tenant_id == TENANT))
    by_id = {item.id: item for item in map(items.item_of, rows)}
    waiting = [(item.thread_id, item.interrupt_id) for item in by_id.values() if item.status.open and item.interrupt_id]
    head = events.head(tx)
    return {
        "told": head.seq if head else 0,
        "count": len(rows),
        "most open": max((waiting.count(item) for item in waiting), default=0),
        "items": [(by_id[number], decisions.of_item(tx, number), grants.of_item(tx, number)) for number in ids],
    }


def _deliver(tx: Tx) -> None:
    tx.change(
        update(deliveries)
        .where(deliveries.c.tenant_id == TENANT, deliveries.c.status == DeliveryStatus.PENDING)
        .where(deliveries.c.due_at <= tx.now())
        .values(status=DeliveryStatus.DELIVERED, due_at=None)
    )


def _run(
    database: str,
    examples: int,
    phases: tuple[Phase, ...] = (Phase.generate, Phase.shrink),
    seeded: Callable[[type[Items]], type[Items]] = lambda machine: machine,
) -> int:
    machine = seeded(type("Items", (Items,), {"database": database, "steps": 0}))
    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=True,
        database=None,
        phases=phases,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)
    return machine.steps


@both_databases
@pytest.mark.scoreboard
@pytest.mark.timeout(600)
@pytest.mark.promise("P2")
@pytest.mark.promise("P4")
@pytest.mark.promise("P5")
@pytest.mark.promise("P9")
@pytest.mark.promise("REVIEW-21")
def test_items_do_what_the_model_says(database: str, count: Count, record_score: RecordScore) -> None:
    least = count(full=3000, quick=200)
    steps = _run(database, count(full=200, quick=12))
    name = database.partition(":")[0].partition("+")[0]
    record_score(f"state machine over items, {name}", "≥ 3,000 rules, 0 divergences", f"{steps} rules, 0 divergences")
    assert steps >= least


def _used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grant, "usable", lambda self, now: self.not_before <= now < self.expires_at)


def _keep_agreeing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "dismiss", lambda tx, item_id: 0)


def _leave_ghosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        thread_items, "close", lambda tx, item, resolution, actor="system", notes=None, message=None: item
    )


def _approve_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "require_open", lambda tx, item, revision, hash, **named: None)


def _stay_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "revoke_of_item", lambda tx, item_id: 0)


@pytest.mark.parametrize(
    ("sabotage", "early"),
    [(_used_again, 1), (_keep_agreeing, 6), (_leave_ghosts, 1), (_approve_late, 1), (_stay_silent, 3)],
)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_control_a_missing_defence_is_noticed(
    database: str, sabotage: Callable[[pytest.MonkeyPatch], None], early: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`early` is a seed with which it is noticed after a few examples."""
    sabotage(monkeypatch)
    with pytest.raises((AssertionError, AssentError, SQLAlchemyError)):
        _run(database, 1200, (Phase.generate,), seed(early))  # until the first that notices
