"""The assistant's own two dialects: questions in words, and tool calls that need a person."""

from __future__ import annotations

from typing import Any

import pytest

from assent.errors import InvalidAnswer, InvalidDecision
from assent.review import dialects
from assent.review.model.questions import Interrupt, ItemType, Question, Verb, Verdict
from tests.unit.dialects.pausing import Asking

CLARIFICATION = {
    "kind": "clarification",
    "clarifications": [
        {"call_id": "c1", "question": "When?\nWhich day?", "context": "a meeting"},
        {"call_id": "c2", "question": "With whom?", "context": None},
    ],
}
CONFIRMATION = {
    "kind": "confirmation",
    "tool_calls": [
        {"call_id": "c1", "tool_name": "create_event", "arguments": {"name": "Standup", "minutes": 30}},
        {"call_id": "c2", "tool_name": "update_event", "arguments": {}},
    ],
}


def recognise(value: Any) -> Question:
    return dialects.recognise(Interrupt("i", value))


def test_a_clarification_asks_one_question_per_action() -> None:
    question = recognise(CLARIFICATION)
    assert (question.dialect, question.type, question.title) == ("clarification", ItemType.QUESTION, "When?")
    assert [(action.call_id, action.description) for action in question.actions] == [
        ("c1", "When?\nWhich day?"),
        ("c2", "With whom?"),
    ]
    assert {action.allowed for action in question.actions} == {(Verb.RESPOND,)}
    assert question.actions[0].args == {"question": "When?\nWhich day?", "context": "a meeting"}


def test_a_clarification_is_answered_by_call_id() -> None:
    asking = Asking(CLARIFICATION)
    asking.decide(Verdict("1", Verb.RESPOND, message="Bob"), Verdict("0", Verb.RESPOND, message="tomorrow"))
    responses = [{"call_id": "c1", "response": "tomorrow"}, {"call_id": "c2", "response": "Bob"}]
    assert asking.received == {"responses": responses}


def test_a_confirmation_asks_for_each_call() -> None:
    question = recognise(CONFIRMATION)
    assert (question.type, question.title) == (ItemType.TOOL, "create_event, update_event")
    assert question.actions[0].args_text == '{"minutes":30,"name":"Standup"}'
    assert {action.allowed for action in question.actions} == {(Verb.APPROVE, Verb.EDIT, Verb.REJECT)}


def test_a_confirmation_is_approved_edited_and_rejected_by_call_id() -> None:
    asking = Asking(CONFIRMATION)
    asking.decide(Verdict("0", Verb.EDIT, args={"minutes": 45}), Verdict("1", Verb.REJECT, message="Wrong time"))
    assert asking.received == {
        "approvals": [
            {"call_id": "c1", "approved": True, "arguments": {"minutes": 45}},
            {"call_id": "c2", "approved": False, "feedback": "Wrong time"},
        ]
    }
    asking = Asking(CONFIRMATION)
    asking.decide(Verdict("0", Verb.APPROVE), Verdict("1", Verb.APPROVE))
    assert asking.received == {"approvals": [{"call_id": "c1", "approved": True}, {"call_id": "c2", "approved": True}]}


@pytest.mark.parametrize(
    ("verdicts", "path"),
    [
        ([Verdict("0", Verb.APPROVE)], "actions"),
        ([Verdict("0", Verb.APPROVE), Verdict("0", Verb.APPROVE)], "actions[1].key"),
        ([Verdict("0", Verb.APPROVE), Verdict("7", Verb.APPROVE)], "actions[1].key"),
        ([Verdict("0", Verb.REJECT), Verdict("1", Verb.APPROVE)], "actions[0].message"),
        ([Verdict("0", Verb.REJECT, message=" \n"), Verdict("1", Verb.APPROVE)], "actions[0].message"),
        ([Verdict("0", Verb.APPROVE, message="fine"), Verdict("1", Verb.APPROVE)], "actions[0].message"),
        ([Verdict("0", Verb.APPROVE, args={}), Verdict("1", Verb.APPROVE)], "actions[0].args"),
        ([Verdict("0", Verb.EDIT), Verdict("1", Verb.APPROVE)], "actions[0].args"),
        ([Verdict("0", Verb.EDIT, args=[1]), Verdict("1", Verb.APPROVE)], "actions[0].args"),
        ([Verdict("0", Verb.EDIT, args={"n": float("nan")}), Verdict("1", Verb.APPROVE)], "actions[0].args.n"),
        ([Verdict("0", Verb.EDIT, args={"n": [b""]}), Verdict("1", Verb.APPROVE)], "actions[0].args.n[0]"),
        ([Verdict("0", Verb.EDIT, args={}, name="drop"), Verdict("1", Verb.APPROVE)], "actions[0].name"),
        ([Verdict("0", Verb.IGNORE), Verdict("1", Verb.APPROVE)], "actions[0].verb"),
    ],
)
def test_other_decisions_are_refused_with_their_field(verdicts: list[Verdict], path: str) -> None:
    with pytest.raises(InvalidDecision) as refused:
        dialects.encode(recognise(CONFIRMATION), verdicts)
    assert path in [problem.path for problem in refused.value.problems]


def approvals(*entries: Any) -> Any:
    return {"approvals": list(entries)}


YES, YES_TOO = {"call_id": "c1", "approved": True}, {"call_id": "c2", "approved": True}


def test_approvals_in_any_order_are_sent_in_the_order_of_the_calls() -> None:
    echoed = {**YES, "arguments": {"minutes": 30.0, "name": "Standup"}, "feedback": None}
    decoded = dialects.decode(recognise(CONFIRMATION), approvals(YES_TOO, echoed))
    assert decoded.verdicts == (Verdict("1", Verb.APPROVE), Verdict("0", Verb.APPROVE))
    assert decoded.value == approvals(YES, YES_TOO)


@pytest.mark.parametrize(
    ("value", "resume", "path"),
    [
        (CONFIRMATION, approvals(YES), "approvals"),
        (CONFIRMATION, approvals(YES, YES), "approvals[1].call_id"),
        (CONFIRMATION, approvals(YES, {"call_id": "c9", "approved": True}), "approvals[1].call_id"),
        (CONFIRMATION, approvals(YES, {"approved": True}), "approvals[1].call_id"),
        (CONFIRMATION, approvals(YES, {"call_id": "c2", "approved": "yes"}), "approvals[1].approved"),
        (CONFIRMATION, approvals(YES, {"call_id": "c2"}), "approvals[1].approved"),
        (CONFIRMATION, approvals(YES, {"call_id": "c2", "approved": False}), "approvals[1].feedback"),
        (CONFIRMATION, approvals(YES, {**YES_TOO, "feedback": "but"}), "approvals[1].feedback"),
        (CONFIRMATION, approvals(YES, {**YES_TOO, "arguments": "x"}), "approvals[1].arguments"),
        (CONFIRMATION, {"responses": []}, "approvals"),
        (CLARIFICATION, {"responses": [{"call_id": "c1", "response": "x"}]}, "responses"),
        (CLARIFICATION, {"responses": [{"call_id": "c1", "response": ""}]}, "responses[0].response"),
        (CLARIFICATION, {"responses": [{"call_id": "c1", "response": 3}]}, "responses[0].response"),
        (CLARIFICATION, {"responses": [{"call_id": "zz", "response": "x"}]}, "responses[0].call_id"),
        (CLARIFICATION, approvals(YES, YES_TOO), "responses"),
        (CLARIFICATION, "tomorrow", ""),
    ],
)
def test_wrong_answers_run_nothing_where_the_item_is_gated(value: Any, resume: Any, path: str) -> None:
    asking = Asking(value)
    with pytest.raises(InvalidAnswer) as refused:
        asking.answer(resume, gated=[asking.interrupts[0].id])
    assert path in [problem.path for problem in refused.value.problems]
    assert asking.received is None


def test_a_confirmation_can_be_refused_for_a_reason_and_a_question_cannot() -> None:
    both = tuple(Verdict(key, Verb.REJECT, message="expired") for key in ("0", "1"))
    assert dialects.negative(recognise(CONFIRMATION), "expired") == both
    assert dialects.feedback(recognise(CONFIRMATION), "expired") == both
    assert dialects.negative(recognise(CLARIFICATION), "expired") is None
    assert dialects.feedback(recognise(CLARIFICATION), "expired") is None


def asked(kind: str, part: Any) -> Any:
    return {"kind": kind, "tool_calls" if kind == "confirmation" else "clarifications": part}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (asked("clarification", []), "clarifications"),
        ({"kind": "clarification"}, "clarifications"),
        (asked("clarification", [{"call_id": "1"}]), "clarifications[0].question"),
        (asked("clarification", [{"call_id": 1, "question": "?"}]), "clarifications[0].call_id"),
        (asked("clarification", [{"call_id": "1", "question": "?"}] * 2), "clarifications[1].call_id"),
        (asked("clarification", [{"call_id": "1", "question": "?", "context": {}}]), "clarifications[0].context"),
        (asked("confirmation", [{"call_id": "1", "tool_name": "x"}]), "tool_calls[0].arguments"),
        (asked("confirmation", [{"call_id": "1", "arguments": {}}]), "tool_calls[0].tool_name"),
        (asked("confirmation", {"0": {}}), "tool_calls"),
    ],
)
def test_a_malformed_question_is_shown_raw_with_its_problems(value: Any, path: str) -> None:
    question = recognise(value)
    assert question.dialect == "raw"
    assert path in [problem.path for problem in question.problems]
