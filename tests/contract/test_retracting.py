"""Approvals of people who have lost the right to give them: none counts, and nothing runs on one that was not used."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import update

from assent.audit.service import Audit
from assent.errors import Forbidden
from assent.identity import users
from assent.identity.model.access import ROLE_SCOPES, Kind, Principal, Role, operator
from assent.identity.rows import users as user_rows
from assent.identity.users import Users
from assent.kernel import events
from assent.kernel.store import tables
from assent.kernel.store.tables import TENANT
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.outbox.model import Delivery, Failure
from assent.review.decisions import decide, rights
from assent.review.inbox import _claim
from assent.review.model.grants import Call, GrantStatus, Passing
from assent.review.model.items import Item, ItemStatus
from assent.review.model.policies import from_json
from assent.review.model.questions import Verb
from assent.review.policy.policies import Policies
from assent.review.policy.standing import StandingTerms
from assent.review.rows import decisions, grants, items, policies
from assent.review.threads import retraction
from assent.review.threads.retraction import Retraction
from assent.runs import cancellation, resumption
from assent.runs.resumption import WITHDRAWN, Resumption
from assent.runs.runs import _cancel
from assent.threads.model.runs import Cancel
from assent.threads.rows import runs
from tests.contract.asks import confirmation, proposal, wait_for
from tests.contract.stores import AnyStore, all_at_once

RETRACTION = Retraction(cancellation.interrupt)

ACME = "acme"
PAY = confirmation("c", "pay", {"n": 1})
CALL = Call("t", "c", "pay", {"n": 1}, "task")
TWO = {"default": {"name": "two", "then": "ask", "approvals": 2, "by": {"groups": ["finance"]}}}
ONE = {"default": {"name": "one", "then": "ask", "by": {"groups": ["finance"]}}}
LOSSES: dict[str, dict[str, Any]] = {
    "disabled": {"disabled": True},
    "demoted": {"role": Role.VIEWER},
    "out of the group": {"groups": ()},
    "erased": {},
}
NO_LOSS: dict[str, Any] = {"role": Role.ADMIN, "groups": ("finance", "ops")}


async def people(store: AnyStore, *names: str, role: Role = Role.REVIEWER) -> list[Principal]:
    made = [
        await Users(store, RETRACTION).create(operator(ACME), name=name, role=role, groups=["finance"])
        for name in names
    ]
    return [Principal(Kind.REVIEWER, user.id, user.name, ACME, ROLE_SCOPES[role]) for user in made]


async def asked(store: AnyStore, policy: dict[str, Any]) -> Item:
    await store.write(ACME, policies.put, from_json(policy), source="test", actor="system")
    [item] = await store.write(ACME, wait_for, "t", i=PAY)
    return item


async def approve(store: AnyStore, person: Principal, item: Item, **more: Any) -> Item:
    return await store.write(ACME, decide.decide, person, item.id, proposal(item, Verb.APPROVE, **more))


async def lose(store: AnyStore, loss: str, name: str = "ana") -> None:
    if loss == "erased":
        await Users(store, RETRACTION).erase(operator(ACME), name)
    else:
        await Users(store, RETRACTION).change(operator(ACME), name, **LOSSES[loss])


async def now(store: AnyStore, item: Item) -> Item:
    stored_item = await store.read(ACME, items.get, item.id)
    assert stored_item is not None
    return stored_item


async def consumed(store: AnyStore) -> Passing:
    return (await store.write(ACME, grants.consume, CALL, None)).passing


async def kinds(store: AnyStore, item: Item) -> list[str]:
    return [event.kind for event, _ in await store.read(ACME, events.of_subject, item.subject)]


async def claimed(store: AnyStore) -> list[Delivery]:
    """What the outbox gives out now."""
    leases = {"resume": timedelta(seconds=30)}
    return (await store.write(None, partial(deliveries.claim, leases=leases, busy=(), limit=10)))[0]


async def sent(store: AnyStore) -> int:
    """What the outbox gives out now, and what arrives."""
    claimed_ids = await claimed(store)
    for one in claimed_ids:
        await store.write(ACME, partial(deliveries.settle, dice=0), one, None)
    return len(claimed_ids)


async def never_ends(*_: str) -> None:
    raise AssertionError("nothing here ends its thread")


def add_run(tx: Tx) -> None:
    """The run that asked."""
    columns = {"actor": "agent:a", "answers": False, "temporary": False, "multitask_strategy": "enqueue"}
    kwargs: dict[str, Any] = {"config": {"configurable": {}}}
    runs.insert_pending(tx, "asking", "t", assistant_id="g", graph_id="g", metadata={}, kwargs=kwargs, **columns)
    tx.change(update(tables.runs).where(tables.runs.c.tenant_id == TENANT).values(status="success", attempt=1))


async def carried(store: AnyStore, delivery: Delivery) -> tuple[Failure | None, bool]:
    """How the delivery ends, and whether a run goes on with what it says."""
    failure = await Resumption(store, never_ends)(delivery)
    return failure, await store.read(ACME, runs.get, delivery.id) is not None


@pytest.mark.promise("P6")
@pytest.mark.parametrize("loss", LOSSES)
async def test_approval_by_a_person_who_lost_the_right_is_retracted(store: AnyStore, loss: str) -> None:
    ana, ben, cleo = await people(store, "ana", "ben", "cleo")
    item = await asked(store, TWO)
    assert (await approve(store, ana, item)).approvals == 1
    await lose(store, loss)
    assert (await now(store, item)).approvals == 0, "what surfaces show agrees"
    second = await approve(store, ben, item)
    assert (second.status, second.approvals) == (ItemStatus.PENDING, 1)
    assert await consumed(store) is Passing.ASK
    assert (await approve(store, cleo, item)).status is ItemStatus.APPROVED
    assert "item.approval_retracted" in await kinds(store, item)
    assert (await Audit(store).verify(operator(ACME))).breaks == []


async def test_control_a_change_that_takes_nothing_away_leaves_the_approval(store: AnyStore) -> None:
    ana, ben = await people(store, "ana", "ben")
    item = await asked(store, TWO)
    await approve(store, ana, item)
    await Users(store, RETRACTION).change(operator(ACME), "ana", **NO_LOSS)
    assert (await approve(store, ben, item)).status is ItemStatus.APPROVED
    assert await consumed(store) is Passing.GO


@pytest.mark.parametrize("loss", LOSSES)
async def test_control_without_the_defence_the_second_approval_approves_the_item(
    store: AnyStore, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Retraction, "retract", lambda *_: None)
    monkeypatch.setattr(rights, "may_still_decide", lambda *_, **__: True)
    ana, ben = await people(store, "ana", "ben")
    item = await asked(store, TWO)
    await approve(store, ana, item)
    await lose(store, loss)
    assert (await approve(store, ben, item)).status is ItemStatus.APPROVED
    assert await consumed(store) is Passing.GO


async def test_approval_by_a_person_disabled_in_the_database_does_not_count(store: AnyStore) -> None:
    ana, ben = await people(store, "ana", "ben")
    item = await asked(store, TWO)
    await approve(store, ana, item)
    await store.write(ACME, lambda tx: user_rows.set_disabled(tx, ana.id, tx.now()))
    assert (await approve(store, ben, item)).status is ItemStatus.PENDING
    with pytest.raises(Forbidden, match="no longer"):
        await approve(store, ana, item)


async def test_restored_rights_do_not_restore_the_approval(store: AnyStore) -> None:
    ana, ben = await people(store, "ana", "ben")
    item = await asked(store, TWO)
    await approve(store, ana, item)
    await lose(store, "disabled")
    await Users(store, RETRACTION).change(operator(ACME), "ana", disabled=False)
    assert (await approve(store, ben, item)).status is ItemStatus.PENDING
    assert (await approve(store, ana, item)).status is ItemStatus.APPROVED


async def test_rejection_by_a_disabled_person_is_kept(store: AnyStore) -> None:
    [ana] = await people(store, "ana")
    item = await asked(store, TWO)
    no = proposal(item, Verb.REJECT, message="no", grace=timedelta(seconds=60))
    await store.write(ACME, decide.decide, ana, item.id, no)
    await lose(store, "disabled")
    assert (await now(store, item)).status is ItemStatus.REJECTED


class TestAGrantThatWasNotUsed:
    @pytest.mark.promise("P7")
    @pytest.mark.parametrize("loss", LOSSES)
    async def test_undelivered_approval_is_retracted_and_the_item_is_pending_again(
        self, store: AnyStore, loss: str
    ) -> None:
        ana, ben = await people(store, "ana", "ben")
        item = await asked(store, ONE)
        await approve(store, ana, item, grace=timedelta(seconds=60))
        await lose(store, loss)
        waiting = await now(store, item)
        assert (waiting.status, waiting.approvals, waiting.decided_by) == (ItemStatus.PENDING, 0, None)
        assert await consumed(store) is Passing.ASK
        store.clock_offset += timedelta(seconds=61)
        assert await sent(store) == 0
        assert (await approve(store, ben, waiting)).status is ItemStatus.APPROVED
        assert await consumed(store) is Passing.GO

    @pytest.mark.promise("P7")
    @pytest.mark.parametrize("loss", LOSSES)
    async def test_delivered_approval_is_retracted_and_the_gate_asks_again(self, store: AnyStore, loss: str) -> None:
        [ana] = await people(store, "ana")
        item = await asked(store, ONE)
        await approve(store, ana, item)
        assert await sent(store) == 1
        await lose(store, loss)
        told = await now(store, item)
        assert (told.status, told.execution) == (ItemStatus.APPROVED, None)
        assert [grant.status for grant in await store.read(ACME, grants.of_item, item.id)] == [GrantStatus.REVOKED]
        assert await consumed(store) is Passing.ASK

    async def test_control_without_the_defence_the_call_runs(
        self, store: AnyStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retraction, "_retract_from", lambda *_: None)
        [ana] = await people(store, "ana")
        item = await asked(store, ONE)
        await approve(store, ana, item)
        await lose(store, "disabled")
        assert await consumed(store) is Passing.GO

    async def test_loss_of_rights_of_one_approver_discards_both_approvals(self, store: AnyStore) -> None:
        ana, ben = await people(store, "ana", "ben")
        item = await asked(store, TWO)
        await approve(store, ana, item)
        await approve(store, ben, item, grace=timedelta(seconds=60))
        await lose(store, "disabled")
        waiting = await now(store, item)
        assert (waiting.status, waiting.approvals) == (ItemStatus.PENDING, 0)

    async def test_started_call_is_not_retracted(self, store: AnyStore) -> None:
        [ana] = await people(store, "ana")
        item = await asked(store, ONE)
        await approve(store, ana, item)
        assert await sent(store) == 1
        assert await consumed(store) is Passing.GO
        await lose(store, "disabled")
        assert [grant.status for grant in await store.read(ACME, grants.of_item, item.id)] == [GrantStatus.STARTED]


class TestADecisionThatASenderHasClaimed:
    @pytest.mark.promise("P6")
    @pytest.mark.parametrize("loss", LOSSES)
    async def test_claimed_decision_is_not_sent_after_its_author_lost_the_right(
        self, store: AnyStore, loss: str
    ) -> None:
        ana, ben = await people(store, "ana", "ben")
        item = await asked(store, ONE)
        await store.write(ACME, add_run)
        await approve(store, ana, item)
        [delivery] = await claimed(store)
        await lose(store, loss)
        assert (await now(store, item)).status is ItemStatus.PENDING
        assert await carried(store, delivery) == (WITHDRAWN, False)
        assert not await store.write(ACME, partial(deliveries.settle, dice=0), delivery, WITHDRAWN)
        await approve(store, ben, await now(store, item))
        [another] = await claimed(store)
        assert await carried(store, delivery) == (WITHDRAWN, False)
        assert await carried(store, another) == (None, True)

    async def test_claimed_decision_is_not_sent_again_after_its_run_was_stopped(self, store: AnyStore) -> None:
        """The sender died before it noted that the delivery had arrived."""
        ana, ben = await people(store, "ana", "ben")
        item = await asked(store, ONE)
        await store.write(ACME, add_run)
        await approve(store, ana, item)
        [delivery] = await claimed(store)
        assert await carried(store, delivery) == (None, True)
        await store.write(ACME, deliveries.hand_back, delivery)
        await store.write(ACME, _cancel, "t", delivery.id, Cancel.ROLLBACK, ben)
        assert (await now(store, item)).status is ItemStatus.PENDING
        assert await claimed(store) == []
        assert await carried(store, delivery) == (WITHDRAWN, False)

    async def test_claimed_decision_is_sent_while_its_author_may_decide(self, store: AnyStore) -> None:
        [ana] = await people(store, "ana")
        item = await asked(store, ONE)
        await store.write(ACME, add_run)
        await approve(store, ana, item)
        [delivery] = await claimed(store)
        await Users(store, RETRACTION).change(operator(ACME), "ana", **NO_LOSS)
        assert await carried(store, delivery) == (None, True)

    async def test_control_without_the_check_the_decision_is_sent(
        self, store: AnyStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(resumption, "_is_withdrawn", lambda *_: False)
        [ana] = await people(store, "ana")
        item = await asked(store, ONE)
        await store.write(ACME, add_run)
        await approve(store, ana, item)
        [delivery] = await claimed(store)
        await lose(store, "disabled")
        assert await carried(store, delivery) == (None, True)


@pytest.mark.promise("P7")
@pytest.mark.parametrize("loss", ["disabled", "demoted", "erased"])
async def test_standing_approvals_end_with_the_right_to_give_them(store: AnyStore, loss: str) -> None:
    [ana] = await people(store, "ana", role=Role.ADMIN)
    await people(store, "root", role=Role.ADMIN)
    await Policies(store).put(operator(ACME), {"default": {"name": "x", "then": "ask"}})
    [item] = await store.write(ACME, wait_for, "t", i=confirmation("c", "pay", {"n": 1}))
    made = await Policies(store).allow_always(
        ana, item.id, revision=item.revision, hash=item.hash, terms=StandingTerms(timedelta(days=1))
    )
    await lose(store, loss)
    [kept] = (await Policies(store).standing(operator(ACME))).items
    assert (kept["id"], kept["revoked_at"] is not None) == (made[0]["id"], True)


async def test_control_a_standing_approval_survives_a_change_of_groups(store: AnyStore) -> None:
    [ana] = await people(store, "ana", role=Role.ADMIN)
    item = await asked(store, {"default": {"name": "x", "then": "ask"}})
    await Policies(store).allow_always(
        ana, item.id, revision=item.revision, hash=item.hash, terms=StandingTerms(timedelta(days=1))
    )
    await lose(store, "out of the group")
    [kept] = (await Policies(store).standing(operator(ACME))).items
    assert kept["revoked_at"] is None


async def test_claims_of_a_disabled_person_are_released(store: AnyStore) -> None:
    ana, ben = await people(store, "ana", "ben")
    item = await asked(store, ONE)
    await store.write(ACME, _claim, ana, item.id)
    await lose(store, "disabled")
    assert (await now(store, item)).claimed_by is None
    await store.write(ACME, _claim, ben, item.id)


@pytest.mark.promise("P6")
async def test_approval_concurrent_with_disabling_never_counts(store: AnyStore) -> None:
    """Either the approval is refused, or it is retracted; whichever comes first."""
    for round in range(10):
        [ana] = await people(store, f"ana {round}")
        await store.write(ACME, policies.put, from_json(TWO), source="test", actor="system")
        [item] = await store.write(ACME, wait_for, f"t{round}", i=PAY)

        def decides(tx: Tx, ana: Principal = ana, item: Item = item) -> Item:
            return decide.decide(tx, ana, item.id, proposal(item, Verb.APPROVE))

        def disables(tx: Tx, ana: Principal = ana) -> object:
            return users._change(tx, RETRACTION, operator(ACME), ana.name, None, True, None)

        outcomes = await all_at_once(store, ACME, decides, disables)
        assert all(isinstance(outcome, Forbidden) or not isinstance(outcome, Exception) for outcome in outcomes), (
            outcomes
        )
        assert await store.read(ACME, decisions.standing, item) == []
        assert (await now(store, item)).approvals == 0
