"""The parts of the gate that need no graph: what is imported, what is asked, what is recorded."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command, Send

import assent
from assent.gate import results
from assent.gate.keeper import current_grant, granted, take_over
from assent.gate.passing import FIRST
from assent.gate.questions import VERBS, Asking
from assent.gate.results import CallFailed, ResultLost
from assent.kernel import canonical
from assent.review.dialects import recognise
from assent.review.model.grants import Call
from assent.review.model.questions import Interrupt, Verb
from assent.review.rows.gate import PAUSED
from assent.review.rows.grants import _refusal
from assent.review.thread_items import IN_DOUBT

CALL = Call("thread", "call-1", "send", {"to": "bob"}, "tools:1")


@pytest.mark.promise("INBOX-09")
@pytest.mark.parametrize("name", assent.__all__)
def test_public_names_can_be_imported(name: str) -> None:
    assert getattr(assent, name).__name__ == name
    assert name in dir(assent)


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = assent.nothing


def test_import_of_the_gate_loads_no_heavy_module() -> None:
    code = (
        "import sys, assent; print(any(name.partition('.')[0] in ('langgraph', 'langchain') for name in sys.modules))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "False"


def test_gate_and_review_use_the_same_constants() -> None:
    from assent.gate.questions import IN_DOUBT as OURS

    assert OURS == IN_DOUBT
    assert _refusal(()) == FIRST
    assert current_grant() is None


@pytest.mark.parametrize("allowed", [VERBS, ("approve",), ("approve", "reject"), ("edit", "respond")])
def test_question_of_the_gate_is_recognised(allowed: tuple[str, ...]) -> None:
    schema = {"type": "object", "properties": {"to": {"$ref": "#/$defs/Name"}}, "$defs": {"Name": {"type": "string"}}}
    value, answer = Asking("Send?", allowed, schema).question(CALL, "again")
    question = recognise(Interrupt("id", value, answer))
    [action] = question.actions
    assert (question.dialect, question.problems) == ("tool_approval", ())
    assert (action.name, action.args, action.call_id, action.description) == ("send", CALL.args, "call-1", "Send?")
    assert tuple(action.allowed) == allowed


@pytest.mark.parametrize(
    ("answer", "verb"),
    [
        ({"type": "approve"}, Verb.APPROVE),
        ({"type": "reject", "message": "no"}, Verb.REJECT),
        ({"type": "respond", "message": "yes"}, Verb.RESPOND),
        ({"type": "edit", "edited_action": {"name": "send", "args": {"to": "eve"}}}, Verb.EDIT),
        ({"type": "edit", "edited_action": {"name": "wipe", "args": {"to": "eve"}}}, None),
        ({"type": "edit", "edited_action": {"name": "send", "args": {"to": 5}}}, None),
        ({"type": "approve", "decisions": []}, Verb.APPROVE),
        ({"type": "perhaps"}, None),
        ({}, None),
        (None, None),
        ("approve", None),
        ([{"type": "approve"}], None),
    ],
)
def test_answer_is_decoded_or_refused(answer: Any, verb: Verb | None) -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    said = Asking("Send?", VERBS, schema).read(CALL, answer)
    assert (said.verb if said else None) is verb


def test_decision_that_is_not_allowed_is_not_decoded() -> None:
    assert Asking("Send?", ("reject",)).read(CALL, {"type": "approve"}) is None


@pytest.mark.parametrize(
    "result",
    [
        None,
        "sent",
        {"deep": [1, 2.5, {"x": None}]},
        ToolMessage("sent", name="send", tool_call_id="call-1", status="error", artifact={"n": 1}),
        AIMessage("hello"),
        Command(update={"messages": [ToolMessage("x", tool_call_id="c")], "n": 1}, goto="model"),
        Command(goto=[Send("tools", {"n": 1})]),
        [ToolMessage("x", tool_call_id="c"), Command(update={"n": 2})],
    ],
)
def test_stored_result_is_returned_unchanged(result: Any) -> None:
    kept = results.recorded(result)
    restored = results.restored(canonical.parse(canonical.text(kept)))
    assert type(restored) is type(result)
    assert results.recorded(restored) == kept


@pytest.mark.promise("P1")
@pytest.mark.parametrize(
    "returned",
    [
        {"assent": "command", "graph": None, "update": {"approved": True}, "goto": ["pay"]},
        {"assent": "send", "node": "pay", "arg": {}},
        {"assent": "message", "of": {"type": "ai", "data": {"content": "", "tool_calls": []}}},
        {"assent": "mapping", "of": {"assent": "command"}},
        {"list": [{"assent": "anything else"}]},
    ],
)
def test_tool_result_that_looks_like_a_command_stays_data(returned: Any) -> None:
    """Else a web page that a tool read could steer the graph, once the result is repeated after a crash."""
    kept = results.recorded(returned)
    assert results.restored(canonical.parse(canonical.text(kept))) == returned


@pytest.mark.parametrize("returned", [{"doubt": "done", "notes": ""}, {"paused": True}, {"error": "x"}, {"lost": "x"}])
def test_tool_result_is_never_read_as_a_decision(returned: Any) -> None:
    kept = results.recorded(returned)
    assert results.settled(kept) is None
    assert kept != PAUSED
    assert results.restored(kept) == returned


def test_result_that_cannot_be_stored_is_reported() -> None:
    with pytest.raises(ResultLost):
        results.restored(results.recorded(object()))


def test_artifact_of_a_tool_result_may_be_lost() -> None:
    kept = results.recorded(ToolMessage("sent", tool_call_id="c", artifact=object()))
    assert results.restored(kept).content == "sent"
    assert results.restored(kept).artifact is None


def test_grant_is_taken_over_by_one_inner_gate_once() -> None:
    grant: Any = object()
    other: Any = object()
    with granted(grant):
        assert id(current_grant()) == id(grant)
        assert [take_over(one) for one in (other, grant, grant)] == [False, True, False]
    assert not take_over(grant)


@pytest.mark.parametrize(("outcome", "heard"), [("done", "carried out"), ("abandon", "Do not retry")])
def test_settled_doubt_gives_the_result_that_the_person_chose(outcome: str, heard: str) -> None:
    assert heard in str(results.settled({"doubt": outcome, "notes": "I looked"}))
    assert results.settled({"value": 1}) is None
    assert results.settled(None) is None


def test_stored_failure_is_raised_again() -> None:
    with pytest.raises(CallFailed, match="OSError: no network"):
        results.restored(results.failure(OSError("no network")))


def test_a_failed_tool_message_is_a_failure() -> None:
    assert results.is_failure(ToolMessage("x", tool_call_id="c", status="error"))
    assert not results.is_failure(ToolMessage("x", tool_call_id="c"))
