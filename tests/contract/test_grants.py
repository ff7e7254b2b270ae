"""Grants on real databases: one approval is at most one start, of exactly that call, for a short while."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from assent.domain.grants import Call, Grant, GrantStatus, Passage, Passing
from assent.domain.items import Execution, Item
from assent.domain.questions import Verb, Verdict
from assent.errors import Conflict, Forbidden
from assent.services import deciding, doubts, undoing
from assent.store import asking, deliveries, events, grants, items, jsontext, threads
from assent.store.asking import IN_DOUBT
from assent.store.checkpoints import Attempt, Fenced
from assent.store.transaction import Tx
from tests.contract.asks import agent, confirmation, person, proposal, wait_for
from tests.contract.stores import AnyStore, all_at_once

ACME = "acme"
ANA = person("ana", ACME)
CALL = Call("t", "c", "pay", {"n": 1}, "task")

pytestmark = pytest.mark.promise("P1")


async def approved(store: AnyStore, *verdicts: Verdict, **more: Any) -> Item:
    [item] = await store.write(ACME, wait_for, "t", i=confirmation("c", "pay", {"n": 1}))
    said = proposal(item, None if verdicts else Verb.APPROVE, verdicts=verdicts, **more)
    decided: Item = await store.write(ACME, deciding.decide, ANA, item.id, said)
    return decided


async def consume(store: AnyStore, tenant: str = ACME, **changed: Any) -> Passage:
    facts = {name: getattr(CALL, name) for name in ("thread_id", "call_id", "tool", "args", "task", "idempotent")}
    return await store.write(tenant, grants.consume, Call(**{**facts, **changed}), None)


async def kept(store: AnyStore, item: Item) -> list[Grant]:
    return await store.read(ACME, grants.of_item, item.id)


async def kinds(store: AnyStore, item: Item) -> list[str]:
    return [event.kind for event, _ in await store.read(ACME, events.of_subject, item.subject)]


async def test_nobody_approved_nothing_runs(store: AnyStore) -> None:
    passed = await consume(store)
    assert (passed.passing, passed.reason) == (Passing.ASK, "nobody has approved this call")
    await store.write(ACME, wait_for, "t", i=confirmation("c", "pay", {"n": 1}))
    assert (await consume(store)).passing is Passing.ASK, "asked is not approved"


@pytest.mark.parametrize(
    "changed",
    [
        {"args": {"n": 2}},
        {"args": {"n": 1.0}},
        {"args": {"n": 1, "m": 0}},
        {"tool": "drain"},
        {"call_id": "d"},
        {"thread_id": "u"},
    ],
    ids=str,
)
async def test_only_exactly_that_call(store: AnyStore, changed: dict[str, Any]) -> None:
    item = await approved(store)
    assert (await consume(store, **changed)).passing is Passing.ASK
    assert (await consume(store, "other")).passing is Passing.ASK
    assert [grant.status for grant in await kept(store, item)] == [GrantStatus.GRANTED]
    assert (await consume(store)).passing is Passing.GO


async def test_a_rejection_grants_nothing(store: AnyStore) -> None:
    item = await approved(store, Verdict("0", Verb.REJECT, message="no"))
    assert await kept(store, item) == []


@pytest.mark.promise("P5")
async def test_an_edit_grants_what_it_says_and_not_what_was_asked(store: AnyStore) -> None:
    await approved(store, Verdict("0", Verb.EDIT, args={"n": 7}))
    assert (await consume(store)).passing is Passing.ASK
    assert (await consume(store, args={"n": 7})).passing is Passing.GO


@pytest.mark.promise("P2")
async def test_of_all_who_start_it_at_once_one_may(store: AnyStore) -> None:
    item = await approved(store)
    tries = [partial(grants.consume, call=Call("t", "c", "pay", {"n": 1}, f"task{n}"), attempt=None) for n in range(10)]
    outcomes = await all_at_once(store, ACME, *tries)
    assert [one.passing for one in outcomes].count(Passing.GO) == 1, outcomes
    assert {one.passing for one in outcomes} == {Passing.GO, Passing.ASK}
    assert (await kinds(store, item)).count("grant.started") == 1


@pytest.mark.promise("P2")
async def test_what_was_done_is_repeated_from_its_record(store: AnyStore) -> None:
    item = await approved(store)
    grant = (await consume(store)).grant
    assert grant is not None
    await store.write(ACME, grants.finish, grant.id, {"paid": 1}, None)
    again = await consume(store)
    assert again.passing is Passing.REPEAT
    assert again.grant is not None
    assert again.grant.result == {"paid": 1}
    assert (await consume(store, task="elsewhere")).passing is Passing.ASK, "another task is another call"
    await store.write(ACME, grants.finish, grant.id, {"paid": 2}, None)
    assert [one.result for one in await kept(store, item)] == [{"paid": 1}], "only once"
    assert (await kinds(store, item))[-2:] == ["grant.started", "grant.done"]


@pytest.mark.promise("P2")
async def test_what_was_cut_off_is_in_doubt_until_a_person_says(store: AnyStore) -> None:
    for outcome, status, execution in (
        ("done", GrantStatus.DONE, Execution.DONE),
        ("abandon", GrantStatus.DONE, Execution.ABANDONED),
        ("run_again", GrantStatus.REVOKED, Execution.GRANTED),
    ):
        await _settle(store, outcome, status, execution)


async def doubtful(store: AnyStore, item: Item) -> dict[str, str]:
    """What the gate asks about the item's call."""
    [grant] = await store.read(ACME, grants.in_doubt, item.id)
    return {"kind": IN_DOUBT, "item_id": item.id, "grant_id": grant.id}


async def answers_to(store: AnyStore, item: Item, interrupt_id: str) -> list[Any]:
    page = await store.read(ACME, deliveries.page, status=None, subject=item.subject, limit=9, cursor=None)
    told = [jsontext.load(one.body) for one in page.items]
    return [one["value"] for one in told if one["interrupt_id"] == interrupt_id]


@pytest.mark.promise("P2")
async def test_what_was_settled_is_not_in_doubt_again_because_a_run_that_had_asked_ends_later(store: AnyStore) -> None:
    """Else a person would say `run again` of the call that is being made again."""
    item = await approved(store)
    assert (await consume(store)).passing is Passing.GO
    asked = await doubtful(store, item)
    await store.write(ACME, wait_for, str(item.thread_id), d=asked)
    await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    await store.write(ACME, wait_for, str(item.thread_id), d=asked)
    assert len(await answers_to(store, item, "d")) == 1
    await store.write(ACME, wait_for, str(item.thread_id), later=asked)
    assert await answers_to(store, item, "later") == [{"outcome": "run_again", "notes": None}]
    again = await store.read(ACME, items.get, item.id)
    assert again is not None
    assert again.execution is Execution.GRANTED
    assert (await consume(store)).passing is Passing.GO, "the second try"
    with pytest.raises(Conflict, match="nothing about this item is in doubt"):
        await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    await store.write(ACME, lambda tx: asking.cut_off(tx, grants.in_doubt(tx, item.id), "run:r"))
    with pytest.raises(Conflict, match="try again in a moment"):
        await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    await store.write(ACME, wait_for, str(item.thread_id), e=await doubtful(store, item))
    await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    assert (await consume(store)).passing is Passing.GO


@pytest.mark.parametrize("outcome", ["done", "abandon"])
async def test_what_was_settled_before_anybody_asked_is_told_when_it_is_asked(store: AnyStore, outcome: str) -> None:
    """Else the thread would wait for ever: what was said had no question to be sent to."""
    item = await approved(store)
    assert (await consume(store)).passing is Passing.GO
    asked = await doubtful(store, item)
    await store.write(ACME, lambda tx: asking.cut_off(tx, grants.in_doubt(tx, item.id), "run:r"))
    settled = await store.write(ACME, doubts.settle, ANA, item.id, outcome, "n", via="rest")
    await store.write(ACME, wait_for, str(item.thread_id), d=asked)
    await store.write(ACME, wait_for, str(item.thread_id), d=asked)
    assert await answers_to(store, item, "d") == [{"outcome": outcome, "notes": "n"}]
    now = await store.read(ACME, items.get, item.id)
    assert now is not None
    assert now.execution is settled.execution


@pytest.mark.promise("P2")
async def test_a_doubt_that_is_about_to_be_asked_about_is_told_from_one_that_nobody_asks_about(store: AnyStore) -> None:
    """The run that noted it is over, and the one in line behind it, which carries the decision, asks."""
    item = await approved(store)
    assert (await consume(store)).passing is Passing.GO
    await store.write(ACME, lambda tx: asking.cut_off(tx, grants.in_doubt(tx, item.id), "run:r"))
    with pytest.raises(Conflict, match="try again in a moment"):
        await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    [sent] = (await store.read(ACME, deliveries.page, status=None, subject=item.subject, limit=9, cursor=None)).items
    assert await store.write(ACME, deliveries.withdraw, sent.id)
    with pytest.raises(Conflict, match="start another one"):
        await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")


async def _settle(store: AnyStore, outcome: str, status: GrantStatus, execution: Execution) -> None:
    thread = f"thread-{outcome}"
    question = confirmation("c", "pay", {"n": 1})
    [item] = await store.write(ACME, wait_for, thread, i=question)
    await store.write(ACME, deciding.decide, ANA, item.id, proposal(item, Verb.APPROVE))
    assert (await consume(store, thread_id=thread)).passing is Passing.GO
    assert (await consume(store, thread_id=thread)).passing is Passing.IN_DOUBT, "the process died in between"
    with pytest.raises(Conflict):
        await store.write(ACME, doubts.settle, ANA, item.id, outcome, None, via="rest")
    await store.write(ACME, wait_for, thread, d=await doubtful(store, item))
    found = await store.read(ACME, items.get, item.id)
    assert (found.execution, found.doubt_id) == (Execution.IN_DOUBT, "d")  # type: ignore[union-attr]
    assert [one.id for one in await store.read(ACME, items.gated_of_thread, thread)] == [item.id]
    with pytest.raises(Forbidden):
        await store.write(ACME, doubts.settle, agent(ACME), item.id, outcome, None, via="rest")
    settled = await store.write(ACME, doubts.settle, ANA, item.id, outcome, "n", via="rest")
    assert settled.execution is execution
    made = await kept(store, item)
    assert made[0].status is status
    passed = (await consume(store, thread_id=thread)).passing
    assert passed is (Passing.GO if outcome == "run_again" else Passing.REPEAT)
    with pytest.raises(Conflict):
        await store.write(ACME, doubts.settle, ANA, item.id, outcome, None, via="rest")
    page = await store.read(ACME, deliveries.page, status=None, subject=item.subject, limit=9, cursor=None)
    assert len(page.items) == 2, "the decision, and what was said about the doubt"


@pytest.mark.promise("P2")
async def test_what_was_begun_comes_before_another_approval(store: AnyStore) -> None:
    """A second grant for a call that was cut off does not run it while nobody has said what became of the first."""
    item = await approved(store)
    [first] = await kept(store, item)
    assert (await consume(store)).passing is Passing.GO
    await store.write(ACME, grants.renew, first, timedelta(minutes=5))
    again = await consume(store)
    assert (again.passing, again.grant and again.grant.id) == (Passing.IN_DOUBT, first.id)
    await store.write(ACME, grants.settle_doubt, first, {"doubt": "abandon", "notes": None})
    assert (await consume(store)).passing is Passing.GO, "the control: once that is settled, the second one counts"


@pytest.mark.promise("P2")
async def test_a_call_like_one_that_was_begun_is_told_of(store: AnyStore) -> None:
    await approved(store)
    assert not (await consume(store, call_id="d")).doubtful
    grant = (await consume(store)).grant
    assert grant is not None
    like = await consume(store, call_id="d", task="elsewhere")
    assert (like.passing, like.doubtful) == (Passing.ASK, True)
    assert "may have been made" in str(like.reason)
    assert not (await consume(store, call_id="d", args={"n": 2})).doubtful
    assert not (await consume(store, "other", call_id="d")).doubtful
    await store.write(ACME, grants.finish, grant.id, {"paid": 1}, None)
    assert not (await consume(store, call_id="d")).doubtful


async def test_a_tool_that_knows_the_grant_is_started_again(store: AnyStore) -> None:
    await approved(store)
    first, second = await consume(store, idempotent=True), await consume(store, idempotent=True)
    assert (first.passing, second.passing) == (Passing.GO, Passing.GO)
    assert first.grant is not None
    assert second.grant is not None
    assert first.grant.id == second.grant.id, "with the same id, by which it knows a second call"


@pytest.mark.promise("P8")
async def test_a_grant_lasts_for_a_quarter_of_an_hour(store: AnyStore) -> None:
    await approved(store)
    store.clock_offset += timedelta(minutes=15)
    passed = await consume(store)
    assert (passed.passing, passed.reason) == (Passing.ASK, "the approval has lapsed")


@pytest.mark.promise("P8")
async def test_a_grant_begins_when_it_cannot_be_taken_back_any_more(store: AnyStore) -> None:
    item = await approved(store, grace=timedelta(seconds=60))
    passed = await consume(store)
    assert (passed.passing, passed.reason) == (Passing.ASK, "the approval can still be taken back")
    await store.write(ACME, undoing.undo, ANA, item.id)
    store.clock_offset += timedelta(seconds=61)
    passed = await consume(store)
    assert (passed.passing, passed.reason) == (Passing.ASK, "the approval was taken back")


async def test_a_grant_of_a_thread_that_ended_stays_for_what_was_approved(store: AnyStore) -> None:
    """The item is decided; that its thread ended does not undo that. What was never decided grants nothing."""
    item = await approved(store)
    await store.write(ACME, asking.end, "t")
    found = await store.read(ACME, items.get, item.id)
    assert found is not None
    assert found.status == "APPROVED"


async def test_a_worker_that_was_given_up_starts_nothing(store: AnyStore) -> None:
    item = await approved(store)

    def stale(tx: Tx) -> None:
        grants.consume(tx, CALL, Attempt("no such run", 1))

    with pytest.raises(Fenced):
        await store.write(ACME, stale)
    assert [grant.status for grant in await kept(store, item)] == [GrantStatus.GRANTED]
    assert await store.read(ACME, threads.get, "t") is not None


@pytest.mark.promise("P2")
@pytest.mark.parametrize("moved", ["removed", "driven on"])
@pytest.mark.parametrize("outcome", ["done", "abandon"])
async def test_a_thread_that_is_gone_settles_nothing(store: AnyStore, moved: str, outcome: str) -> None:
    """Nobody waits for the answer any more, so it cannot be run again; what is true can still be said."""
    item = await approved(store)
    grant = (await consume(store)).grant
    assert grant is not None
    asked = {"kind": IN_DOUBT, "item_id": item.id, "grant_id": grant.id}
    await store.write(ACME, wait_for, "t", d=asked)
    if moved == "removed":
        await store.write(ACME, threads.remove, "t")
    else:
        await store.write(ACME, threads.drop_questions, "t", "reviewer:ana")
    found = await store.read(ACME, items.get, item.id)
    assert found is not None
    assert (found.execution, found.doubt_id) == (Execution.IN_DOUBT, None)
    like = await store.read(ACME, grants.doubted_like, "t", "pay", {"n": 1})
    assert [(one.id, one.doubt_id) for one in like] == [(grant.id, None)]
    with pytest.raises(Conflict, match="is over"):
        await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    settled = await store.write(ACME, doubts.settle, ANA, item.id, outcome, None, via="rest")
    assert settled.execution is {"done": Execution.DONE, "abandon": Execution.ABANDONED}[outcome]
    assert await store.read(ACME, grants.doubted_like, "t", "pay", {"n": 1}) == []
