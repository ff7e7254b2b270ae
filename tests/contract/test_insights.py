"""Insights over real databases: what is counted, for whom, and that no more is read than is said."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Select, event

from assent.errors import Forbidden, Invalid
from assent.identity.model.access import Principal, Scope
from assent.kernel.store.tables import items
from assent.kernel.store.transaction import Tx
from assent.review import requests
from assent.review.decisions import decide as deciding
from assent.review.decisions import undo
from assent.review.insights import Insights
from assent.review.model.insights import Outcome, Report
from assent.review.model.items import Item
from assent.review.model.questions import Verb, Verdict
from assent.review.requests import Request
from assent.review.rows import insights
from tests.contract.asks import agent, confirmation, person, proposal, wait_for
from tests.contract.stores import AnyStore, only_sqlite, outside
from tests.contract.test_threads import EXPLAIN

ACME = "acme"
ANA, BEN = person("ana", ACME), person("ben", ACME)
AUDITOR = replace(person("kim", ACME), scopes=frozenset({Scope.ITEMS_READ, Scope.AUDIT_READ}))


async def ask(store: AnyStore, thread: str, tool: str = "pay", tenant: str = ACME) -> Item:
    [item] = await store.write(tenant, wait_for, thread, i=confirmation("c", tool, {"n": 1}))
    return item


async def decide(store: AnyStore, who: Principal, item: Item, verb: Verb, **more: Any) -> Item:
    said = proposal(item, verb, **more)
    return await store.write(who.tenant, deciding.decide, who, item.id, said)


async def report(store: AnyStore, caller: Principal = AUDITOR, days: int = 7) -> Report:
    return await Insights(store).report(caller, days)


def shown(report_shown: Report) -> dict[str, dict[str, int]]:
    return {tool.name: {outcome.value: count for outcome, count in tool.counts.items()} for tool in report_shown.tools}


async def test_report_counts_items_by_outcome(store: AnyStore) -> None:
    first, second, third = [await ask(store, name) for name in ("a", "b", "c")]
    mail = await ask(store, "d", "mail")
    store.clock_offset += timedelta(minutes=10)
    await decide(store, ANA, first, Verb.APPROVE)
    await decide(store, BEN, second, Verb.REJECT, message="no")
    edit = proposal(third, verdicts=(Verdict("0", Verb.EDIT, args={"n": 2}),))
    await store.write(ACME, deciding.decide, ANA, third.id, edit)
    report_shown = await report(store)
    assert (report_shown.asked, report_shown.open, report_shown.waits.count) == (4, 1, 3)
    assert report_shown.waits.median == pytest.approx(600, abs=30)
    assert shown(report_shown) == {"pay": {"approved": 1, "rejected": 1, "changed": 1}}
    assert sum(period.waits.count for period in report_shown.periods) == 3
    assert {reviewer.name: reviewer.total for reviewer in report_shown.reviewers} == {ANA.actor: 2, BEN.actor: 1}
    assert report_shown.oldest == mail.created_at
    assert report_shown.capped is False


async def test_requests_and_questions_are_grouped_by_type(store: AnyStore) -> None:
    await store.write(ACME, requests.create, agent(ACME), Request("config_change", "Raise the limit"))
    [question] = await store.write(ACME, wait_for, "q", i="Which way?")
    await decide(store, ANA, question, Verb.RESPOND, message="left")
    assert shown(await report(store)) == {question.type: {"approved": 1}}


async def test_revision_requests_and_undone_decisions_are_counted(store: AnyStore) -> None:
    sent, undone = await ask(store, "a"), await ask(store, "b")
    await store.write(
        ACME, partial(deciding.ask_for_revision, grace=timedelta(), via="rest"), ANA, sent.id, 1, sent.hash, "shorter"
    )
    await decide(store, ANA, undone, Verb.APPROVE, grace=timedelta(seconds=60))
    await store.write(ACME, undo.undo, ANA, undone.id)
    [ana] = (await report(store)).reviewers
    assert ana.counts == {Outcome.SENT_BACK: 1}


async def test_backlog_is_grouped_by_age(store: AnyStore) -> None:
    for name, wait in (
        ("a", timedelta(days=30)),
        ("b", timedelta(days=2)),
        ("c", timedelta(hours=5)),
        ("d", timedelta()),
    ):
        await ask(store, name)
        store.clock_offset += wait
    report_shown = await report(store)
    assert (report_shown.backlog, report_shown.open) == ([1, 1, 1, 0, 1], 4)


async def test_only_the_range_is_counted(store: AnyStore) -> None:
    await decide(store, ANA, await ask(store, "old"), Verb.APPROVE)
    store.clock_offset += timedelta(days=20)
    await decide(store, ANA, await ask(store, "new"), Verb.APPROVE)
    counted = {days: (await report(store, days=days)).waits.count for days in (7, 30, 90)}
    assert counted == {7: 1, 30: 2, 90: 2}


async def test_reviewers_see_their_own_figures_and_auditors_all(store: AnyStore) -> None:
    await decide(store, ANA, await ask(store, "a"), Verb.APPROVE)
    await decide(store, BEN, await ask(store, "b"), Verb.APPROVE)
    own, all_of_them = await report(store, BEN), await report(store)
    assert ([reviewer.name for reviewer in own.reviewers], own.everyone) == ([BEN.actor], False)
    assert (sorted(reviewer.name for reviewer in all_of_them.reviewers), all_of_them.everyone) == (
        [ANA.actor, BEN.actor],
        True,
    )
    assert own.tools == all_of_them.tools


async def test_reviewer_who_approves_everything_at_once_is_listed(store: AnyStore) -> None:
    waiting = [await ask(store, f"t{number}") for number in range(12)]
    for item in waiting:
        await decide(store, ANA, item, Verb.APPROVE)
        store.clock_offset += timedelta(seconds=1)
    for caller in (AUDITOR, ANA):
        [stamp] = (await report(store, caller)).stamps
        assert (stamp.actor, stamp.decisions, stamp.approved) == (ANA.actor, 12, 12)
        assert stamp.pace < 5
    assert (await report(store, BEN)).stamps == []


async def test_large_range_is_sampled_evenly(store: AnyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insights, "MOST_READ", 20)
    for number in range(60):
        await decide(store, ANA, await ask(store, f"t{number}"), Verb.APPROVE)
    report_shown = await report(store)
    assert (report_shown.asked, report_shown.sampled, report_shown.capped) == (60, True, True)
    assert 0 < report_shown.counted <= 20
    assert report_shown.decided == 60
    assert [reviewer.total for reviewer in report_shown.reviewers] == [20]
    monkeypatch.setattr(insights, "MOST_READ", 60)
    assert (await report(store)).sampled is False


async def test_report_needs_its_scope_and_a_valid_range_and_leaves_out_other_tenants(store: AnyStore) -> None:
    await ask(store, "theirs", tenant="other")
    report_shown = await report(store)
    assert (report_shown.asked, report_shown.open, report_shown.reviewers, report_shown.oldest) == (0, 0, [], None)
    with pytest.raises(Forbidden):
        await report(store, replace(ANA, scopes=frozenset({Scope.DECIDE})))
    with pytest.raises(Invalid):
        await report(store, days=8)


def plan(url: str, statement: Select[Any], **values: Any) -> str:
    """How SQLite says it will find the rows, in its own words."""
    engine = outside(url)
    with engine.connect() as connection:
        event.listen(engine, "before_cursor_execute", EXPLAIN["sqlite"], retval=True)
        result = connection.execute(statement, {"tenant": ACME, **values})
        return "\n".join(str(row[-1]) for row in result.cursor.fetchall())


@only_sqlite
async def test_report_uses_indexes(store: AnyStore, database: str) -> None:
    since = await store.read(ACME, Tx.now)
    for statement in (insights._ASKED, insights._SAID):
        query_plan = plan(database, statement.limit(5), since=since)
        assert "ix_items_tenant_id_created_at_item_id" in query_plan
        assert "TEMP B-TREE" not in query_plan
    aged = plan(database, insights._COUNT.where(items.c.created_at < since))
    assert "COVERING INDEX ix_items_tenant_id_open_created_at_item_id" in aged
