"""The test tools for agent authors: the inbox in memory, the builders, the clock."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from assent.errors import InvalidPolicy, StaleRevision
from assent.review.model.items import ItemStatus
from assent.review.model.policies import Effect
from assent.review.model.questions import Resolution
from assent.testing import Clock, Inbox, gated_call, judged, policy, rule


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with Inbox() as inbox:
        yield inbox


def test_every_verb_decides_the_waiting_item(inbox: Inbox) -> None:
    inbox.ask(gated_call("pay", amount=1))
    assert inbox.approve().status is ItemStatus.APPROVED
    inbox.ask(gated_call("pay", amount=2))
    assert inbox.reject("too much").status is ItemStatus.REJECTED
    inbox.ask(gated_call("pay", amount=3))
    assert inbox.respond("paid by hand").resolution is Resolution.RESPONDED
    inbox.ask(gated_call("pay", amount=4, to="bob"))
    assert inbox.edit(amount=5).args == {"amount": 5, "to": "bob"}
    assert inbox.items() == []


def test_waiting_fails_unless_exactly_one_item_waits(inbox: Inbox) -> None:
    with pytest.raises(AssertionError, match="not 0"):
        inbox.waiting()
    pay, send = inbox.ask(gated_call("pay", amount=1)), inbox.ask(gated_call("send", to="bob"))
    with pytest.raises(AssertionError, match=r"not 2: \['pay', 'send'\]"):
        inbox.waiting()
    assert inbox.waiting("send") == send
    assert inbox.approve(pay).tool == "pay"


def test_decision_about_an_old_revision_is_refused(inbox: Inbox) -> None:
    item = inbox.ask(gated_call("pay", amount=1))
    with pytest.raises(StaleRevision):
        inbox.decide(item.id, "approve", revision=item.revision, hash="another", by="ana")


@pytest.mark.promise("HITL-14")
def test_inboxes_in_memory_share_nothing_and_end_with_close(inbox: Inbox) -> None:
    inbox.ask(gated_call("pay", amount=1))
    with Inbox() as other:
        assert other.items() == []
    inbox.close()
    assert inbox.items() == []


def test_inbox_with_a_path_keeps_its_items(tmp_path: Path) -> None:
    item = Inbox(tmp_path / "gate.db").ask(gated_call("pay", amount=1))
    assert Inbox(tmp_path / "gate.db").waiting() == item


def test_clock_advances_and_is_restored(inbox: Inbox) -> None:
    inbox.use(policy(rule("pay", "ask", pending_ttl="1h")))
    item = inbox.ask(gated_call("pay", amount=1))
    inbox.clock.advance(timedelta(minutes=30), minutes=29)
    assert inbox.waiting() == item
    inbox.clock.advance(minutes=2)
    assert inbox.get(item.id).status is ItemStatus.EXPIRED
    assert Clock(inbox._store).offset == timedelta(minutes=61)
    inbox.clock.reset()
    assert inbox.clock.offset == timedelta()


def test_policies_are_built_and_judged() -> None:
    rules = policy(rule("pay", "never", when="args.amount > 100"), default="advise")
    assert judged(rules, gated_call("pay", amount=101)) is Effect.NEVER
    assert judged(rules, gated_call("pay", amount=100)) is Effect.ADVISE
    with pytest.raises(InvalidPolicy, match=r"rules\[0\]\.then"):
        policy(rule("pay", "perhaps"))
