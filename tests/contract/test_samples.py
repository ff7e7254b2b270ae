"""Sample data: marked, counted, removed, and never in the audit log."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assent.assistant.demo.history import history
from assent.errors import Forbidden
from assent.identity.model.access import operator
from assent.kernel import events
from assent.kernel.store.transaction import Tx
from assent.review.inbox import Inbox
from assent.review.insights import Insights
from assent.review.samples import PREFIX, Samples
from tests.contract.asks import confirmation, person, wait_for
from tests.contract.stores import AnyStore

ACME = "acme"
HISTORY = history(datetime.now(UTC))[-30:]


def kinds(tx: Tx) -> list[str]:
    page = events.search(tx, subject=None, kind=None, actor=None, limit=500, cursor=None)
    return [event.kind for event, *_ in page.items]


async def test_samples_are_marked_closed_and_have_no_events(store: AnyStore) -> None:
    samples, inbox, ana = Samples(store), Inbox(store), person("ana", ACME)
    before = await store.read(ACME, kinds)
    assert await samples.add(ACME, HISTORY) == len(HISTORY)
    assert await samples.add(ACME, HISTORY) == 0, "only once"
    assert await store.read(ACME, kinds) == ["sample.added", *before]
    page = await inbox.list(ana, limit=100)
    assert all(item["sample"] and item["status"] != "PENDING" for item in page.items)
    assert len(page.items) == len(HISTORY)
    report = await Insights(store).report(ana)
    assert (report.samples, report.open, report.asked) == (len(HISTORY), 0, len(HISTORY))
    for item in page.items[:3]:
        seen = await inbox.get(ana, item["id"])
        assert {"decide", "undo", "cancel"}.isdisjoint(seen["can"])
        assert seen["requester"].startswith(f"agent:{PREFIX}")


async def test_removal_leaves_real_items_and_is_recorded(store: AnyStore) -> None:
    samples, admin = Samples(store), operator(ACME)
    [real] = await store.write(ACME, wait_for, "t", i=confirmation("c", "pay", {"n": 1}))
    await samples.add(ACME, HISTORY)
    with pytest.raises(Forbidden):
        await samples.remove(person("ana", ACME))
    assert await samples.remove(admin) == len(HISTORY)
    assert (await samples.count(admin), await samples.remove(admin)) == (0, 0)
    left = await Inbox(store).list(person("ana", ACME), limit=100)
    assert [item["id"] for item in left.items] == [real.id]
    recorded = [kind for kind in await store.read(ACME, kinds) if kind.startswith("sample.")]
    assert recorded == ["sample.removed", "sample.added"]


def test_history_is_plausible_and_the_same_each_time() -> None:
    now = datetime(2026, 11, 18, 12, tzinfo=UTC)
    samples = history(now)
    assert samples == history(now)
    assert 150 < len(samples) < 350
    assert all(timedelta(0) < sample.age - sample.wait or sample.verb is None for sample in samples)
    assert {sample.reviewer for sample in samples} == {"ana", "ben", "chen"}
    verbs: list[Any] = [sample.verb for sample in samples]
    assert 0.6 < verbs.count("approve") / len(verbs) < 0.9
    assert verbs.count("reject") > 3
