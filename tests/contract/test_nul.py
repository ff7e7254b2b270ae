"""A NUL in what an agent asks. Postgres holds none in a text, and a question must not get lost over it."""

from typing import Any

import pytest

from assent.domain.items import Item, ItemStatus
from assent.domain.questions import Verb
from assent.services import carrying, deciding
from assent.store import asking, grants, items
from assent.store.transaction import Tx
from tests.contract.asks import confirmation, person, proposal, wait_for
from tests.contract.stores import AnyStore

ACME = "acme"
ANA = person("ana", ACME)
NUL = "a\0b"
ALLOWED = {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True}
ACTION = {"action_request": {"action": NUL, "args": {"x": NUL}}, "config": ALLOWED, "description": NUL}
CALL = {"type": "tool_approval", "tool_call_id": NUL, "name": "pay", "args": {"n": NUL}, "description": NUL}
TOOL = {**CALL, "tool_call_id": "c", "name": NUL}
FORM = {"kind": "clarification", "clarifications": [{"call_id": NUL, "question": NUL, "context": NUL}]}

pytestmark = pytest.mark.promise("P12")


async def ask(store: AnyStore, question: Any) -> Item:
    [item] = await store.write(ACME, wait_for, "t", i=question)
    found: Item = item
    return found


@pytest.mark.parametrize(
    ("question", "shown"),
    [(NUL, "a␀b"), (ACTION, "a␀b"), (CALL, "pay"), (TOOL, "a␀b"), (FORM, "a␀b"), (confirmation(NUL, NUL, {}), "a␀b")],
)
async def test_a_question_with_it_is_asked(store: AnyStore, question: Any, shown: str) -> None:
    item = await ask(store, question)
    assert shown in item.title
    assert "\0" not in item.title + item.summary
    assert (await store.read(ACME, items.revision, item.id, 1)).asked == question, "as it was asked"


async def test_it_may_come_with_a_revision(store: AnyStore) -> None:
    item = await ask(store, confirmation("c", "pay", {"n": 1}))
    again = await ask(store, TOOL)
    assert (again.id, again.revision, again.title, again.summary) == (item.id, 2, "a␀b", "a␀b")


@pytest.mark.parametrize("question", [CALL, TOOL, confirmation(NUL, "pay", {}), confirmation("c", NUL, {})])
async def test_no_approval_is_bound_to_a_call_that_cannot_be_kept(store: AnyStore, question: Any) -> None:
    item = await ask(store, question)
    revision = await store.read(ACME, items.revision, item.id, 1)
    [problem] = asking.question_of(item, revision).problems
    assert "no approval is bound to it" in problem.message
    assert await store.read(ACME, _doubts, item) == []
    decided = await store.write(ACME, deciding.decide, ANA, item.id, proposal(item, Verb.APPROVE))
    assert decided.status is ItemStatus.APPROVED, "the agent is told all the same"
    assert await store.read(ACME, grants.of_item, item.id) == []


async def test_one_that_can_be_kept_has_its_approval(store: AnyStore) -> None:
    """The control: arguments may hold anything."""
    item = await ask(store, {**CALL, "tool_call_id": "c"})
    await store.write(ACME, deciding.decide, ANA, item.id, proposal(item, Verb.APPROVE))
    assert [one.call_id for one in await store.read(ACME, grants.of_item, item.id)] == ["c"]


def _doubts(tx: Tx, item: Item) -> list[dict[str, str]]:
    return carrying.doubts(tx, carrying.case_of(tx, item), {"0"})
