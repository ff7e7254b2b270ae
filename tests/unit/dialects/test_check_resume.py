"""Answers over the LangGraph API: what is rewritten, what passes, what is refused, and how."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from assent.errors import InvalidAnswer
from assent.review.dialects import UnknownInterrupt, check_resume
from assent.review.model.questions import Interrupt, Verb, Verdict
from tests.unit.dialects.pausing import CONFIG, Paused

ONE, OTHER, GONE = "a" * 32, "b" * 32, "c" * 32
HITL = {
    "action_requests": [{"name": "go", "args": {}}],
    "review_configs": [{"action_name": "go", "allowed_decisions": ["approve"]}],
}
APPROVED = {"decisions": [{"type": "approve"}]}
PENDING = [Interrupt(ONE, "left?"), Interrupt(OTHER, HITL)]


@pytest.mark.parametrize("resume", ["yes", False, 0, "", [], [1], {"a": 1}, {"a": 1, GONE: 2}])
def test_answer_by_position_with_one_pending_becomes_keyed(resume: Any) -> None:
    answers = check_resume(PENDING[:1], resume, exact=[ONE])
    assert {id: answer.value for id, answer in answers.items()} == {ONE: resume}
    assert answers[ONE].decoded


def test_answer_by_id_answers_one_or_all() -> None:
    answers = check_resume(PENDING, {OTHER: APPROVED})
    assert [(id, answer.verdicts) for id, answer in answers.items()] == [(OTHER, (Verdict("0", Verb.APPROVE),))]
    assert set(check_resume(PENDING, {OTHER: APPROVED, ONE: "x"})) == {ONE, OTHER}


def test_ids_in_another_format_than_langgraphs_are_accepted() -> None:
    assert check_resume([Interrupt("short", "?")], {"short": 1})["short"].value == 1


@pytest.mark.parametrize("resume", [None, {}, {ONE: None}, {ONE: {}}, {ONE: "x", OTHER: None}, float("nan"), {1: 2}])
def test_malformed_answer_is_refused(resume: Any) -> None:
    with pytest.raises(InvalidAnswer):
        check_resume(PENDING, resume)


def test_a_number_that_langgraph_cannot_store_is_refused_before_it_gets_there() -> None:
    for resume in (2**64, {ONE: {"n": [0, -(2**63) - 1]}}):
        with pytest.raises(InvalidAnswer, match="64 bits"):
            check_resume(PENDING[:1], resume)


def test_answer_by_position_with_several_pending_lists_the_pending_ids() -> None:
    with pytest.raises(InvalidAnswer, match=f"{ONE}, {OTHER}"):
        check_resume(PENDING, "yes")


@pytest.mark.parametrize(
    ("resume", "ids"), [({GONE: "x"}, (GONE,)), ({ONE: "x", GONE: "y"}, (GONE,)), ({ONE: 1, "typo": 2}, ("typo",))]
)
def test_unknown_id_is_a_conflict_that_lists_the_pending_ids(resume: Any, ids: tuple[str, ...]) -> None:
    with pytest.raises(UnknownInterrupt) as refused:
        check_resume(PENDING, resume)
    assert refused.value.ids == ids
    assert refused.value.pending == (ONE, OTHER)


def test_answer_with_nothing_pending_is_a_conflict() -> None:
    for resume in ("yes", {GONE: 1}):
        with pytest.raises(UnknownInterrupt) as refused:
            check_resume([], resume)
        assert refused.value.pending == ()


def test_problems_of_several_answers_name_their_interrupt() -> None:
    with pytest.raises(InvalidAnswer) as refused:
        check_resume(PENDING, {ONE: None, OTHER: {"decisions": [{"type": "reject"}]}})
    assert [problem.path for problem in refused.value.problems] == [ONE, f"{OTHER}.decisions[0].type"]


def test_other_forms_pass_verbatim_on_advisory_items_only() -> None:
    pending = [
        Interrupt(ONE, {"kind": "confirmation", "tool_calls": [{"call_id": "1", "tool_name": "x", "arguments": {}}]})
    ]
    [answer] = check_resume(pending, "go ahead").values()
    assert (answer.decoded, answer.value) == (False, "go ahead")
    assert answer.problems
    with pytest.raises(InvalidAnswer):
        check_resume(pending, "go ahead", exact=[ONE])


def test_a_response_schema_binds_advisory_items_as_well() -> None:
    value = {"kind": "confirmation", "tool_calls": [{"call_id": "1", "tool_name": "x", "arguments": {}}]}
    pending = [Interrupt(ONE, value, {"type": "object"})]
    with pytest.raises(InvalidAnswer):
        check_resume(pending, "go ahead")
    assert not check_resume(pending, {"mine": 1})[ONE].decoded


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]


def test_a_keyed_answer_reaches_the_right_one_of_two_parallel_questions() -> None:
    builder = StateGraph(State)
    for name in ("left", "right"):
        builder.add_node(name, lambda state, name=name: {"said": [f"{name}={interrupt(name + '?')}"]})
        builder.add_edge(START, name)
    paused = Paused(builder.compile(checkpointer=InMemorySaver()), {"said": []})
    by_value = {each.value: each.id for each in paused.interrupts}
    with pytest.raises(InvalidAnswer):
        paused.answer("x")
    paused.answer({by_value["right?"]: "R"})
    assert [each.value for each in paused.interrupts] == ["left?"]
    with pytest.raises(UnknownInterrupt):
        paused.answer({by_value["right?"]: "again"})
    paused.answer("L")
    assert sorted(paused.graph.get_state(CONFIG).values["said"]) == ["left=L", "right=R"]
