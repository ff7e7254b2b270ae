"""Every wrong `/resume` of the contract's table: it says what is wrong, runs nothing, and what is pending stays so."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.api.talking import NO, YES, Body, Talk, approvals, house, houses, responses, talk

__all__ = ["house", "houses", "talk"]

FIRST, SECOND = "a_0_1", "b_0_1"
"""The ids of the two calls that `confirm` asks about first."""

yes = [{"call_id": FIRST, **YES}, {"call_id": SECOND, **YES}]


@dataclass(frozen=True)
class Wrong:
    row: str
    answer: Body
    status: int = 422
    named: str = ""
    paths: tuple[str, ...] = ()


TABLE = [
    Wrong("a field is missing", {"approvals": [yes[0], {"call_id": SECOND}]}, paths=("approvals.1.approved",)),
    Wrong("a field is missing: the id", {"approvals": [YES, yes[1]]}, paths=("approvals.0.call_id",)),
    Wrong(
        "a field has the wrong type",
        {"approvals": [yes[0], {**yes[1], "approved": "yes"}]},
        paths=("approvals.1.approved",),
    ),
    Wrong("a list is none", {"approvals": yes[0]}, paths=("approvals",)),
    Wrong(
        "arguments are no object",
        {"approvals": [yes[0], {**yes[1], "arguments": [1]}]},
        paths=("approvals.1.arguments",),
    ),
    Wrong("an unknown key", {"approvals": [yes[0], {**yes[1], "args": {}}]}, paths=("approvals.1.args",)),
    Wrong("the thread is no text", {"thread_id": 5, "approvals": yes}, paths=("thread_id",)),
    Wrong(
        "both lists",
        {"approvals": yes, "clarification_responses": []},
        named="clarification_responses and approvals were given",
    ),
    Wrong("neither list", {}, named="none was given"),
    Wrong("neither list, said as null", {"approvals": None, "clarification_responses": None}, named="none was given"),
    Wrong(
        "the wrong kind",
        {"clarification_responses": [{"call_id": FIRST, "response": "x"}]},
        named="waits for approvals: a confirmation is pending",
        paths=("clarification_responses",),
    ),
    Wrong(
        "the wrong kind: a form",
        {"elicitation": {"action": "accept"}},
        named="a confirmation is pending",
        paths=("elicitation",),
    ),
    Wrong(
        "an unknown call_id",
        {"approvals": [*yes, {"call_id": "c", **YES}]},
        named="'c' is not pending",
        paths=("approvals[2].call_id",),
    ),
    Wrong("a missing call_id", {"approvals": yes[:1]}, named=f"'{SECOND}' has no answer", paths=("approvals",)),
    Wrong("no call_id at all", {"approvals": []}, named=f"'{FIRST}' has no answer", paths=("approvals", "approvals")),
    Wrong(
        "a repeated call_id",
        {"approvals": [yes[0], *yes]},
        named=f"'{FIRST}' is answered twice",
        paths=("approvals[1].call_id",),
    ),
    Wrong(
        "a rejection without feedback",
        {"approvals": [yes[0], {"call_id": SECOND, "approved": False}]},
        named=f"approvals[1].feedback of '{SECOND}'",
        paths=("approvals[1].feedback",),
    ),
    Wrong(
        "a rejection with blank feedback",
        {"approvals": [{**yes[0], "approved": False, "feedback": " \n"}, yes[1]]},
        named=f"approvals[0].feedback of '{FIRST}'",
        paths=("approvals[0].feedback",),
    ),
    Wrong("an unknown thread", {"thread_id": "no such thread", "approvals": yes}, 404),
]


@pytest.mark.promise("ASST-15", "ASST-16")
@pytest.mark.parametrize("wrong", TABLE, ids=[wrong.row for wrong in TABLE])
async def test_wrong_answer_runs_nothing_and_leaves_the_item_pending(talk: Talk, wrong: Wrong) -> None:
    action = await talk.asked("confirm")
    assert [call["call_id"] for call in action["tool_calls"]] == [FIRST, SECOND]
    before, runs = await talk.items(), await talk.runs()
    response = await talk.resume(**wrong.answer)
    assert (response.status_code, response.json()["status"]) == (wrong.status, "error"), response.text
    assert wrong.named in response.json()["message"]
    assert tuple(error["path"] for error in response.json().get("errors", [])) == wrong.paths or not wrong.paths
    assert (await talk.items(), await talk.runs(), await talk.done()) == (before, runs, [])
    control = await talk.resume(approvals=yes)
    assert (control.status_code, len(await talk.done())) == (200, 2)


Before = Callable[[Talk], Any]


async def _said_hello(talk: Talk) -> None:
    await talk.run("hello")


async def _approved(talk: Talk) -> None:
    action = await talk.asked("confirm")
    assert (await talk.resume(approvals=approvals(action, YES, NO))).status_code == 200


async def _answered(talk: Talk) -> None:
    action = await talk.asked("ask")
    assert (await talk.resume(clarification_responses=responses(action, "x", "y"))).status_code == 200


@pytest.mark.parametrize(
    ("before", "winner"),
    [(_said_hello, None), (_approved, ["approve", "reject"]), (_answered, ["respond", "respond"])],
    ids=["nothing is pending", "it was decided already", "it was answered already"],
)
async def test_wrong_answer_with_nothing_pending_is_refused(
    talk: Talk, before: Before, winner: list[str] | None
) -> None:
    await before(talk)
    runs, done = await talk.runs(), await talk.done()
    response = await talk.resume(approvals=yes)
    assert (response.status_code, response.json()["status"]) == (409, "error")
    assert response.json()["pending_action"] == {"kind": "no_action_needed"}
    decision = response.json().get("decision")
    assert (decision and [action["verb"] for action in decision["actions"]]) == winner
    assert (await talk.runs(), await talk.done()) == (runs, done)


async def test_approvals_for_a_pending_clarification_are_refused(talk: Talk) -> None:
    action = await talk.asked("ask")
    response = await talk.resume(approvals=yes)
    assert (response.status_code, response.json()["pending_action"]) == (422, action)
    assert (len(await talk.items()), await talk.done()) == (1, [])
