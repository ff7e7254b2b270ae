"""The parts of the gate that need no graph: what is imported, what is asked, what is recorded."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command, Send

import assent
from assent.dialects import recognise
from assent.domain import canonical
from assent.domain.grants import Call
from assent.domain.questions import Interrupt, Verb
from assent.gate import results
from assent.gate.decorator import _is_injected
from assent.gate.keeper import current_grant, granted, take_over
from assent.gate.passing import FIRST
from assent.gate.questions import VERBS, Asking
from assent.gate.results import CallFailed, ResultLost
from assent.store.asking import IN_DOUBT
from assent.store.grants import _refusal

CALL = Call("thread", "call-1", "send", {"to": "bob"}, "tools:1")


@pytest.mark.promise("INBOX-09")
@pytest.mark.parametrize("name", assent.__all__)
def test_what_authors_use_is_there(name: str) -> None:
    assert getattr(assent, name).__name__ == name
    assert name in dir(assent)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = assent.nothing


def test_the_import_is_cheap() -> None:
    code = (
        "import sys, assent; print(any(name.partition('.')[0] in ('langgraph', 'langchain') for name in sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_words_that_both_sides_know() -> None:
    from assent.gate.questions import IN_DOUBT as OURS

    assert OURS == IN_DOUBT
    assert _refusal(()) == FIRST
    assert current_grant() is None


@pytest.mark.parametrize("allowed", [VERBS, ("approve",), ("approve", "reject"), ("edit", "respond")])
def test_the_question_is_read_as_it_is_meant(allowed: tuple[str, ...]) -> None:
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
def test_an_answer_is_understood_or_not(answer: Any, verb: Verb | None) -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    said = Asking("Send?", VERBS, schema).read(CALL, answer)
    assert (said.verb if said else None) is verb


def test_what_is_not_allowed_is_not_understood() -> None:
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
def test_a_result_comes_back_as_it_was(result: Any) -> None:
    kept = results.recorded(result)
    restored = results.restored(canonical.parse(canonical.text(kept)))
    assert type(restored) is type(result)
    assert results.recorded(restored) == kept


def test_what_cannot_be_kept_says_so() -> None:
    with pytest.raises(ResultLost):
        results.restored(results.recorded(object()))


def test_what_a_tool_returns_beside_its_content_may_be_lost() -> None:
    kept = results.recorded(ToolMessage("sent", tool_call_id="c", artifact=object()))
    assert results.restored(kept).content == "sent"
    assert results.restored(kept).artifact is None


def test_a_grant_opens_one_more_gate_once() -> None:
    grant: Any = object()
    other: Any = object()
    with granted(grant):
        assert id(current_grant()) == id(grant)
        assert [take_over(one) for one in (other, grant, grant)] == [False, True, False]
    assert not take_over(grant)


@pytest.mark.parametrize(("outcome", "heard"), [("done", "carried out"), ("abandon", "Do not retry")])
def test_what_a_person_said_about_a_doubt(outcome: str, heard: str) -> None:
    assert heard in str(results.settled({"doubt": outcome, "notes": "I looked"}))
    assert results.settled({"value": 1}) is None
    assert results.settled(None) is None


def test_a_failure_stays_a_failure() -> None:
    with pytest.raises(CallFailed, match="OSError: no network"):
        results.restored(results.failure(OSError("no network")))


def test_a_failed_tool_message_is_a_failure() -> None:
    assert results.is_failure(ToolMessage("x", tool_call_id="c", status="error"))
    assert not results.is_failure(ToolMessage("x", tool_call_id="c"))


def test_parameters_that_langgraph_fills_in() -> None:
    from typing import Annotated

    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import InjectedToolCallId
    from langgraph.prebuilt import InjectedState, ToolRuntime
    from langgraph.runtime import Runtime
    from langgraph.store.base import BaseStore

    injected = [
        RunnableConfig,
        RunnableConfig | None,
        ToolRuntime,
        ToolRuntime[Any, Any],
        Runtime[Any],
        BaseStore | None,
        Annotated[str, InjectedToolCallId],
        Annotated[dict[str, Any], InjectedState("messages")],
    ]
    assert all(map(_is_injected, injected))
    assert not any(map(_is_injected, [str, dict[str, Any], int | None, Any, None, Annotated[str, "words"], list[str]]))
