"""A NUL in what an agent asks. Postgres holds none in a text, and a question must not get lost over it."""

from typing import Any

import pytest

from assent.kernel.store.transaction import Tx
from assent.review.decisions import consequences, decide
from assent.review.dialects import question_of
from assent.review.model.items import Item, ItemStatus
from assent.review.model.questions import Verb
from assent.review.rows import grants, items
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
    listed_item: Item = item
    return listed_item


@pytest.mark.parametrize(
    ("question", "shown"),
    [(NUL, "a␀b"), (ACTION, "a␀b"), (CALL, "pay"), (TOOL, "a␀b"), (FORM, "a␀b"), (confirmation(NUL, NUL, {}), "a␀b")],
)
async def test_question_with_a_nul_becomes_an_item(store: AnyStore, question: Any, shown: str) -> None:
    item = await ask(store, question)
    assert shown in item.title
    assert "\0" not in item.title + item.summary
    assert (await store.read(ACME, items.revision, item.id, 1)).asked == question, "as it was asked"


async def test_revision_with_a_nul_is_stored(store: AnyStore) -> None:
    item = await ask(store, confirmation("c", "pay", {"n": 1}))
    again = await ask(store, TOOL)
    assert (again.id, again.revision, again.title, again.summary) == (item.id, 2, "a␀b", "a␀b")


@pytest.mark.parametrize("question", [CALL, TOOL, confirmation(NUL, "pay", {}), confirmation("c", NUL, {})])
async def test_call_with_a_nul_gets_no_grant(store: AnyStore, question: Any) -> None:
    item = await ask(store, question)
    revision = await store.read(ACME, items.revision, item.id, 1)
    [problem] = question_of(item, revision).problems
    assert "no approval is bound to it" in problem.message
    assert await store.read(ACME, _doubts, item) == []
    decided = await store.write(ACME, decide.decide, ANA, item.id, proposal(item, Verb.APPROVE))
    assert decided.status is ItemStatus.APPROVED, "the agent is told all the same"
    assert await store.read(ACME, grants.of_item, item.id) == []


async def test_control_a_call_without_a_nul_gets_its_grant(store: AnyStore) -> None:
    """The control: arguments may hold anything."""
    item = await ask(store, {**CALL, "tool_call_id": "c"})
    await store.write(ACME, decide.decide, ANA, item.id, proposal(item, Verb.APPROVE))
    assert [grant.call_id for grant in await store.read(ACME, grants.of_item, item.id)] == ["c"]


def _doubts(tx: Tx, item: Item) -> list[dict[str, str]]:
    return consequences.doubts(tx, consequences.case_of(tx, item), {"0"})
