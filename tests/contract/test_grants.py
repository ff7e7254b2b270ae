"""Grants on real databases: one approval is at most one start, of exactly that call, for a short while."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from assent.errors import Conflict, Forbidden, InvalidDecision
from assent.gate.questions import doubt
from assent.kernel import events, jsontext
from assent.kernel.canonical import Json
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.review import thread_items
from assent.review.decisions import decide, doubts, undo
from assent.review.inbox import Doubt, Inbox
from assent.review.model.grants import Call, Grant, GrantStatus, Passage, Passing
from assent.review.model.items import Execution, Item
from assent.review.model.questions import Verb, Verdict
from assent.review.rows import gate, grants, items
from assent.threads.rows import threads
from assent.threads.rows.state.checkpoints import Attempt, Fenced
from tests.contract.asks import agent, confirmation, person, proposal, wait_for
from tests.contract.stores import AnyStore, all_at_once

ACME = "acme"
ANA = person("ana", ACME)
CALL = Call("t", "c", "pay", {"n": 1}, "task")

pytestmark = pytest.mark.promise("P1")


async def approved(store: AnyStore, *verdicts: Verdict, **more: Any) -> Item:
    [item] = await store.write(ACME, wait_for, "t", i=confirmation("c", "pay", {"n": 1}))
    said = proposal(item, None if verdicts else Verb.APPROVE, verdicts=verdicts, **more)
    decided: Item = await store.write(ACME, decide.decide, ANA, item.id, said)
    return decided


async def consume(store: AnyStore, tenant: str = ACME, **changed: Any) -> Passage:
    facts = {name: getattr(CALL, name) for name in ("thread_id", "call_id", "tool", "args", "task", "idempotent")}
    return await store.write(tenant, grants.consume, Call(**{**facts, **changed}), None)


async def kept(store: AnyStore, item: Item) -> list[Grant]:
    return await store.read(ACME, grants.of_item, item.id)


async def kinds(store: AnyStore, item: Item) -> list[str]:
    return [event.kind for event, _ in await store.read(ACME, events.of_subject, item.subject)]


async def test_call_without_an_approval_does_not_run(store: AnyStore) -> None:
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
async def test_grant_covers_only_the_approved_call(store: AnyStore, changed: dict[str, Any]) -> None:
    item = await approved(store)
    assert (await consume(store, **changed)).passing is Passing.ASK
    assert (await consume(store, "other")).passing is Passing.ASK
    assert [grant.status for grant in await kept(store, item)] == [GrantStatus.GRANTED]
    assert (await consume(store)).passing is Passing.GO


async def test_a_rejection_grants_nothing(store: AnyStore) -> None:
    item = await approved(store, Verdict("0", Verb.REJECT, message="no"))
    assert await kept(store, item) == []


@pytest.mark.promise("P5")
async def test_edit_grants_the_edited_arguments_only(store: AnyStore) -> None:
    await approved(store, Verdict("0", Verb.EDIT, args={"n": 7}))
    assert (await consume(store)).passing is Passing.ASK
    assert (await consume(store, args={"n": 7})).passing is Passing.GO


@pytest.mark.promise("P2")
async def test_concurrent_starts_of_one_grant_have_one_winner(store: AnyStore) -> None:
    item = await approved(store)
    tries = [partial(grants.consume, call=Call("t", "c", "pay", {"n": 1}, f"task{n}"), attempt=None) for n in range(10)]
    outcomes = await all_at_once(store, ACME, *tries)
    assert [outcome.passing for outcome in outcomes].count(Passing.GO) == 1, outcomes
    assert {outcome.passing for outcome in outcomes} == {Passing.GO, Passing.ASK}
    assert (await kinds(store, item)).count("grant.started") == 1


@pytest.mark.promise("P2")
async def test_finished_call_is_repeated_from_its_record(store: AnyStore) -> None:
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
    assert [memory_item.result for memory_item in await kept(store, item)] == [{"paid": 1}], "only once"
    assert (await kinds(store, item))[-2:] == ["grant.started", "grant.done"]


@pytest.mark.promise("P2")
async def test_interrupted_call_is_in_doubt_until_a_person_settles_it(store: AnyStore) -> None:
    for outcome, status, execution in (
        ("done", GrantStatus.DONE, Execution.DONE),
        ("abandon", GrantStatus.DONE, Execution.ABANDONED),
        ("run_again", GrantStatus.REVOKED, Execution.GRANTED),
    ):
        await _settle(store, outcome, status, execution)


async def doubtful(store: AnyStore, item: Item, asked_in: str = "d") -> Json:
    """What the gate asks about the item's call, once it has said in which interrupt it will."""
    [grant] = await store.read(ACME, grants.in_doubt, item.id)
    await store.write(ACME, gate.announce_doubt, grant.id, asked_in, None)
    return doubt(grant, CALL)[0]


async def answers_to(store: AnyStore, item: Item, interrupt_id: str) -> list[Any]:
    page = await store.read(ACME, deliveries.page, status=None, subject=item.subject, limit=9, cursor=None)
    told = [jsontext.load(item.body) for item in page.items]
    return [one["value"] for one in told if one["interrupt_id"] == interrupt_id]


@pytest.mark.promise("P2")
async def test_settled_call_stays_settled_when_an_earlier_run_ends(store: AnyStore) -> None:
    """Else a person would say `run again` of the call that is being made again."""
    item = await approved(store)
    assert (await consume(store)).passing is Passing.GO
    asked = await doubtful(store, item)
    await store.write(ACME, wait_for, str(item.thread_id), d=asked)
    await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    await store.write(ACME, wait_for, str(item.thread_id), d=asked)
    assert len(await answers_to(store, item, "d")) == 1
    await store.write(ACME, gate.announce_doubt, asked["grant_id"], "later", None)
    await store.write(ACME, wait_for, str(item.thread_id), later=asked)
    assert await answers_to(store, item, "later") == [{"outcome": "run_again", "notes": None}]
    again = await store.read(ACME, items.get, item.id)
    assert again is not None
    assert again.execution is Execution.GRANTED
    assert (await consume(store)).passing is Passing.GO, "the second try"
    with pytest.raises(Conflict, match="no call of this item is in doubt"):
        await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    await store.write(ACME, lambda tx: thread_items.cut_off(tx, grants.in_doubt(tx, item.id), "run:r"))
    with pytest.raises(Conflict, match="retry in a moment"):
        await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    await store.write(ACME, wait_for, str(item.thread_id), e=await doubtful(store, item, "e"))
    await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    assert (await consume(store)).passing is Passing.GO


async def doubted_twice(store: AnyStore) -> tuple[Item, str, str]:
    """An item whose call was in doubt, ran again and is in doubt again, and the grants of both doubts."""
    item = await approved(store)
    ids = []
    for asked_in in ("d", "e"):
        assert (await consume(store)).passing is Passing.GO
        asked = await doubtful(store, item, asked_in)
        await store.write(ACME, wait_for, str(item.thread_id), **{asked_in: asked})
        ids.append(str(asked["grant_id"]))
        if asked_in == "d":
            await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    return item, ids[0], ids[1]


@pytest.mark.promise("P2")
@pytest.mark.parametrize("outcome", ["done", "run_again", "abandon"])
async def test_second_answer_about_a_doubt_does_not_settle_a_later_one(store: AnyStore, outcome: Doubt) -> None:
    item, first, second = await doubted_twice(store)
    inbox = Inbox(store)
    for grant_id in (None, first):
        with pytest.raises(InvalidDecision, match="grant_id") as refused:
            await inbox.settle_doubt(ANA, item.id, outcome, grant_id=grant_id)
        assert [grant["grant_id"] for grant in refused.value.extra["grants"]] == [second]
    kept_item = await store.read(ACME, items.get, item.id)
    assert kept_item is not None
    assert kept_item.execution is Execution.IN_DOUBT
    settled = await inbox.settle_doubt(ANA, item.id, outcome, grant_id=second)
    assert settled["execution"] != Execution.IN_DOUBT


async def test_control_answer_that_names_no_doubt_settles_a_later_one(
    store: AnyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubts, "_granted_before", lambda tx, grant: False)
    item, _, _ = await doubted_twice(store)
    assert (await Inbox(store).settle_doubt(ANA, item.id, "done"))["execution"] == Execution.DONE


@pytest.mark.parametrize("outcome", ["done", "abandon"])
async def test_outcome_settled_before_the_question_is_sent_when_it_is_asked(store: AnyStore, outcome: str) -> None:
    """Else the thread would wait for ever: what was said had no question to be sent to."""
    item = await approved(store)
    assert (await consume(store)).passing is Passing.GO
    asked = await doubtful(store, item)
    await store.write(ACME, lambda tx: thread_items.cut_off(tx, grants.in_doubt(tx, item.id), "run:r"))
    settled = await store.write(ACME, doubts.settle, ANA, item.id, outcome, "n", via="rest")
    await store.write(ACME, wait_for, str(item.thread_id), d=asked)
    await store.write(ACME, wait_for, str(item.thread_id), d=asked)
    assert await answers_to(store, item, "d") == [{"outcome": outcome, "notes": "n"}]
    now = await store.read(ACME, items.get, item.id)
    assert now is not None
    assert now.execution is settled.execution


@pytest.mark.promise("P2")
async def test_doubt_with_a_pending_question_is_distinguished_from_one_without(store: AnyStore) -> None:
    """The run that noted it has ended, and the one in line behind it, which carries the decision, asks."""
    item = await approved(store)
    assert (await consume(store)).passing is Passing.GO
    await store.write(ACME, lambda tx: thread_items.cut_off(tx, grants.in_doubt(tx, item.id), "run:r"))
    with pytest.raises(Conflict, match="retry in a moment"):
        await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    [sent] = (await store.read(ACME, deliveries.page, status=None, subject=item.subject, limit=9, cursor=None)).items
    assert await store.write(ACME, deliveries.withdraw, sent.id)
    with pytest.raises(Conflict, match="start another run"):
        await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")


async def _settle(store: AnyStore, outcome: str, status: GrantStatus, execution: Execution) -> None:
    thread = f"thread-{outcome}"
    question = confirmation("c", "pay", {"n": 1})
    [item] = await store.write(ACME, wait_for, thread, i=question)
    await store.write(ACME, decide.decide, ANA, item.id, proposal(item, Verb.APPROVE))
    assert (await consume(store, thread_id=thread)).passing is Passing.GO
    assert (await consume(store, thread_id=thread)).passing is Passing.IN_DOUBT, "the process died in between"
    with pytest.raises(Conflict):
        await store.write(ACME, doubts.settle, ANA, item.id, outcome, None, via="rest")
    await store.write(ACME, wait_for, thread, d=await doubtful(store, item))
    stored_item = await store.read(ACME, items.get, item.id)
    assert (stored_item.execution, stored_item.doubt_id) == (Execution.IN_DOUBT, "d")  # type: ignore[union-attr]
    assert [item.id for item in await store.read(ACME, items.gated_of_thread, thread)] == [item.id]
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
async def test_second_grant_does_not_run_an_unsettled_call(store: AnyStore) -> None:
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
async def test_identical_call_to_a_started_one_is_reported_as_doubtful(store: AnyStore) -> None:
    await approved(store)
    assert not (await consume(store, call_id="d")).doubtful
    grant = (await consume(store)).grant
    assert grant is not None
    like = await consume(store, call_id="d", task="elsewhere")
    assert (like.passing, like.doubtful) == (Passing.ASK, True)
    assert "may have run already" in str(like.reason)
    assert not (await consume(store, call_id="d", args={"n": 2})).doubtful
    assert not (await consume(store, "other", call_id="d")).doubtful
    await store.write(ACME, grants.finish, grant.id, {"paid": 1}, None)
    assert not (await consume(store, call_id="d")).doubtful


async def test_idempotent_tool_is_started_again(store: AnyStore) -> None:
    await approved(store)
    first, second = await consume(store, idempotent=True), await consume(store, idempotent=True)
    assert (first.passing, second.passing) == (Passing.GO, Passing.GO)
    assert first.grant is not None
    assert second.grant is not None
    assert first.grant.id == second.grant.id, "with the same id, by which it knows a second call"


@pytest.mark.promise("P8")
async def test_grant_expires_after_fifteen_minutes(store: AnyStore) -> None:
    await approved(store)
    store.clock_offset += timedelta(minutes=15)
    passed = await consume(store)
    assert (passed.passing, passed.reason) == (Passing.ASK, "the approval has expired")


@pytest.mark.promise("P8")
async def test_grant_begins_after_the_grace_period(store: AnyStore) -> None:
    item = await approved(store, grace=timedelta(seconds=60))
    passed = await consume(store)
    assert (passed.passing, passed.reason) == (Passing.ASK, "the approval can still be undone")
    await store.write(ACME, undo.undo, ANA, item.id)
    store.clock_offset += timedelta(seconds=61)
    passed = await consume(store)
    assert (passed.passing, passed.reason) == (Passing.ASK, "the approval was undone")


async def test_grant_of_an_approved_item_survives_the_end_of_its_thread(store: AnyStore) -> None:
    """The item is decided; that its thread ended does not undo that. What was never decided grants nothing."""
    item = await approved(store)
    await store.write(ACME, thread_items.end, "t")
    stored_item = await store.read(ACME, items.get, item.id)
    assert stored_item is not None
    assert stored_item.status == "APPROVED"


async def test_superseded_worker_cannot_start_a_call(store: AnyStore) -> None:
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
async def test_call_of_a_deleted_thread_cannot_be_run_again(store: AnyStore, moved: str, outcome: str) -> None:
    """No run waits for the answer, so the call cannot be run again; its outcome can still be recorded."""
    item = await approved(store)
    grant = (await consume(store)).grant
    assert grant is not None
    await store.write(ACME, wait_for, "t", d=await doubtful(store, item))
    if moved == "removed":
        await store.write(ACME, thread_items.remove_thread, "t")
    else:
        await store.write(ACME, thread_items.supersede_questions, "t", "reviewer:ana")
    stored_item = await store.read(ACME, items.get, item.id)
    assert stored_item is not None
    assert (stored_item.execution, stored_item.doubt_id) == (Execution.IN_DOUBT, None)
    like = await store.read(ACME, grants.doubted_like, "t", "pay", {"n": 1})
    assert [(row.id, row.doubt_id) for row in like] == [(grant.id, None)]
    with pytest.raises(Conflict, match="has ended"):
        await store.write(ACME, doubts.settle, ANA, item.id, "run_again", None, via="rest")
    settled = await store.write(ACME, doubts.settle, ANA, item.id, outcome, None, via="rest")
    assert settled.execution is {"done": Execution.DONE, "abandon": Execution.ABANDONED}[outcome]
    assert await store.read(ACME, grants.doubted_like, "t", "pay", {"n": 1}) == []


FORGERIES: dict[str, dict[str, Any]] = {
    "nothing but the kind": {},
    "a grant that is not there": {"grant_id": "no such grant"},
    "another item": {"item_id": "another"},
    "another call": {"tool_call_id": "another"},
    "another tool": {"name": "wipe"},
    "other arguments": {"args": {"n": 2}},
}


@pytest.mark.promise("P1", "P6")
@pytest.mark.parametrize("wrong", FORGERIES)
async def test_forged_doubt_is_an_ordinary_item(store: AnyStore, wrong: str) -> None:
    item = await approved(store)
    assert (await consume(store)).passing is Passing.GO
    genuine = await doubtful(store, item)
    forged = {**genuine, **FORGERIES[wrong]} if FORGERIES[wrong] else {"kind": genuine["kind"]}
    [raised] = await store.write(ACME, wait_for, "t", d=forged)
    assert (raised.interrupt_id, raised.dialect) == ("d", "raw")
    stored_item = await store.read(ACME, items.get, item.id)
    assert stored_item is not None
    assert (stored_item.execution, stored_item.doubt_id) == (Execution.STARTED, None)
    assert await store.write(ACME, wait_for, "t", d=genuine) == [], "the control: the gate's own question has no item"


@pytest.mark.promise("P1", "P6")
@pytest.mark.parametrize("where", ["in another interrupt", "on another thread", "of a call that is not begun"])
async def test_copied_doubt_question_counts_only_when_the_gate_asks(store: AnyStore, where: str) -> None:
    """An agent can read the ids of items and grants, so it can repeat what the gate would ask."""
    item = await approved(store)
    if where == "of a call that is not begun":
        [grant] = await kept(store, item)
        value = doubt(grant, CALL)[0]
    else:
        assert (await consume(store)).passing is Passing.GO
        value = await doubtful(store, item, "announced")
    thread = "another" if where == "on another thread" else "t"
    raised = await store.write(ACME, wait_for, thread, d=value)
    assert [one.interrupt_id for one in raised] == ["d"]
    stored_item = await store.read(ACME, items.get, item.id)
    assert stored_item is not None
    assert stored_item.doubt_id is None
