"""Closed items go when their time is over, with all that hangs on them; what could still matter stays."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from assent.audit.service import Audit
from assent.identity.model.access import operator
from assent.kernel import events
from assent.kernel.store import tables
from assent.kernel.store.transaction import Tx
from assent.retention import Retention
from assent.review.decisions import decide
from assent.review.model.items import Execution, Item
from assent.review.model.questions import Verb
from assent.review.rows import grants, items
from tests.contract.asks import confirmation, person, proposal, wait_for
from tests.contract.stores import AnyStore

ACME = "acme"
ANA = person("ana", ACME)
YEAR = timedelta(days=365)
HANGS_ON_IT = (
    tables.items,
    tables.item_revisions,
    tables.item_links,
    tables.item_marks,
    tables.comments,
    tables.decisions,
    tables.grants,
)


async def asked(store: AnyStore, thread: str = "t", tenant: str = ACME, **more: Any) -> Item:
    questions = {"i": confirmation("c", "pay", {"n": 1}), **more}
    return next(iter(await store.write(tenant, wait_for, thread, **questions)))


async def decided(store: AnyStore, thread: str = "t", verb: Verb = Verb.REJECT, **more: Any) -> Item:
    """An item that was decided, and what was decided has arrived."""
    item = await asked(store, thread, **more)
    said = proposal(item, verb, message="no" if verb is Verb.REJECT else None)
    await store.write(ACME, decide.decide, ANA, item.id, said)
    await store.write(ACME, set_deliveries, "delivered")
    return item


def set_deliveries(tx: Tx, status: str) -> None:
    mine = tables.deliveries.c.tenant_id == tables.TENANT
    tx.change(update(tables.deliveries).where(mine).values(status=status, due_at=None))


async def prune(store: AnyStore, after: timedelta | None = YEAR) -> int:
    long = timedelta(days=9999)
    retention = Retention(store, Audit(store), event_payloads=None, deliveries=long, frames=long, items=after)
    return (await retention.prune()).items


def rows(tx: Tx, item_id: str) -> list[int]:
    """How many there are in each table."""
    mine = [(table.c.tenant_id == tables.TENANT, table.c.item_id == item_id) for table in HANGS_ON_IT]
    return [len(tx.all(select(table).where(*each))) for table, each in zip(HANGS_ON_IT, mine, strict=True)]


async def left(store: AnyStore, item: Item) -> bool:
    return sum(await store.read(ACME, rows, item.id)) > 0


async def test_closed_item_is_removed_with_its_dependent_rows(store: AnyStore) -> None:
    item, other = await decided(store, verb=Verb.APPROVE), await asked(store, tenant="other")

    def hang(tx: Tx) -> None:
        items.add_comment(tx, item.id, "c", "ana", "hm")
        items.link(tx, item.id, "t")
        items.mark(tx, item.id, "ana", draft={"a": 1})

    await store.write(ACME, hang)
    assert all(await store.read(ACME, rows, item.id))
    assert await prune(store) == 0, "it is not old enough"
    store.clock_offset = 2 * YEAR
    assert await prune(store, None) == 0, "nobody has said that it may go"
    assert await prune(store) == 1
    assert not await left(store, item)
    assert await store.read("other", items.get, other.id) is not None
    told = await store.read(ACME, events.of_subject, item.subject)
    assert [event.kind for event, _ in told][:2] == ["item.created", "item.approved"], (
        "the timeline keeps what happened"
    )
    assert {payload for _, payload in told} == {None}
    assert (await Audit(store).verify(operator(ACME))).breaks == []
    [(removed, payload)] = await store.read(ACME, events.of_subject, "items")
    assert (removed.kind, item.id in str(payload)) == ("items.removed", True)
    assert await prune(store) == 0


async def test_open_item_is_kept(store: AnyStore) -> None:
    item = await asked(store)
    store.clock_offset = 2 * YEAR
    assert await prune(store) == 0
    assert await left(store, item)


@pytest.mark.parametrize("status", ["pending", "sending", "failed"])
async def test_undelivered_item_is_kept(store: AnyStore, status: str) -> None:
    item = await decided(store)
    await store.write(ACME, set_deliveries, status)
    store.clock_offset = 2 * YEAR
    assert await prune(store) == 0
    assert await left(store, item)


@pytest.mark.promise("P2")
@pytest.mark.parametrize("execution", list(Execution))
async def test_item_in_doubt_is_kept(store: AnyStore, execution: Execution) -> None:
    item = await decided(store)
    await store.write(ACME, lambda tx: items.change(tx, item, execution=execution))
    store.clock_offset = 2 * YEAR
    assert await prune(store) == (0 if execution in (Execution.STARTED, Execution.IN_DOUBT) else 1)


async def test_item_with_a_usable_grant_is_kept(store: AnyStore) -> None:
    item = await decided(store, verb=Verb.APPROVE)
    [grant] = await store.read(ACME, grants.of_item, item.id)
    store.clock_offset = grant.expires_at - grant.created_at - timedelta(minutes=1)
    assert await prune(store, timedelta(minutes=1)) == 0
    store.clock_offset += timedelta(minutes=2)
    assert await prune(store, timedelta(minutes=1)) == 1


async def test_items_of_an_active_thread_are_kept(store: AnyStore) -> None:
    first = await decided(store)
    await store.write(ACME, wait_for, "t", j=confirmation("d", "pay", {"n": 2}))
    store.clock_offset = 2 * YEAR
    assert await prune(store) == 0
    assert await left(store, first)
    await store.write(ACME, wait_for, "t")
    assert await prune(store) == 0, "it has only just come to its end"
    store.clock_offset = 4 * YEAR
    assert await prune(store) == 2


async def test_many_items_are_removed_in_batches(store: AnyStore) -> None:
    for number in range(230):
        await asked(store, f"t{number}")
        await store.write(ACME, wait_for, f"t{number}")
    store.clock_offset = 2 * YEAR
    assert await prune(store) == 230
    assert (await Audit(store).verify(operator(ACME))).breaks == []
