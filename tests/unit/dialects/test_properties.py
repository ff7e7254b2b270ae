"""Both ways, for anything: every value is a question, every allowed decision survives the way there and back, every
other one is refused with its field named."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assent.errors import InvalidDecision
from assent.kernel import canonical
from assent.review import dialects
from assent.review.model.questions import Interrupt, Question, Verb, Verdict, outcome
from tests.unit.dialects import strategies

ALL = sorted(strategies.VALUES)


def recognise(value: Any) -> Question:
    return dialects.recognise(Interrupt("i", value))


@given(strategies.interrupts)
def test_any_raised_value_is_a_question_that_can_be_stored_and_shown(interrupt: Interrupt) -> None:
    question = dialects.recognise(interrupt)
    assert question.title
    assert question.actions
    assert len({action.key for action in question.actions}) == len(question.actions)
    assert all(problem.message for problem in question.problems)
    for action in question.actions:
        assert canonical.text(action.args) == action.args_text
    assert question.interrupt is not None
    again = dialects.recognise(question.interrupt)
    assert (again.dialect, again.actions) == (question.dialect, question.actions)
    dialects.negative(question, "expired")
    dialects.feedback(question, "again")


@given(strategies.mutated())
def test_malformed_value_of_a_dialect_reports_its_problems(value: Any) -> None:
    question = recognise(value)
    meant = isinstance(value, dict) and (
        {"action_request", "action_requests"} & value.keys()
        or value.get("type") in ("tool_approval", "mcp_elicitation")
        or value.get("kind") in ALL
    )
    if meant and question.dialect == "raw":
        assert question.problems


@pytest.mark.parametrize("dialect", ALL)
@given(data=st.data())
def test_every_allowed_decision_is_encoded_and_read_back(dialect: str, data: st.DataObject) -> None:
    question = recognise(data.draw(strategies.VALUES[dialect]))
    assert question.dialect == dialect
    assert all("NUL" in problem.message for problem in question.problems), "of which only a remark is made"
    assume(all(action.allowed for action in question.actions))
    verdicts = data.draw(strategies.verdicts(question))
    value = dialects.encode(question, verdicts)
    carried = json.loads(canonical.text(value))
    assert dialects.decode(question, carried) == dialects.Decoded(verdicts, value)
    assert dialects.encode(question, tuple(reversed(verdicts))) == value
    assert outcome(verdicts).status
    [answer] = dialects.check_resume([Interrupt("i", question.value)], {"i": carried}, exact=["i"]).values()
    assert answer.verdicts == verdicts


@pytest.mark.parametrize("dialect", ALL)
@given(data=st.data())
def test_verb_that_is_not_allowed_is_refused_with_its_field(dialect: str, data: st.DataObject) -> None:
    question = recognise(data.draw(strategies.VALUES[dialect]))
    assume(all(action.allowed for action in question.actions))
    verdicts = list(data.draw(strategies.verdicts(question)))
    at = data.draw(st.integers(0, len(verdicts) - 1))
    wrong = data.draw(st.sampled_from([verb for verb in Verb if verb not in question.actions[at].allowed]))
    verdicts[at] = replace(verdicts[at], verb=wrong)
    with pytest.raises(InvalidDecision) as refused:
        dialects.encode(question, verdicts)
    assert [problem.path for problem in refused.value.problems] == [f"actions[{at}].verb"]


@pytest.mark.parametrize("dialect", ALL)
@given(data=st.data())
def test_the_decisions_must_be_those_of_the_actions(dialect: str, data: st.DataObject) -> None:
    question = recognise(data.draw(strategies.VALUES[dialect]))
    assume(all(action.allowed for action in question.actions))
    verdicts = data.draw(strategies.verdicts(question))
    for wrong, path in [
        (verdicts[:-1], "actions"),
        ((*verdicts, verdicts[0]), f"actions[{len(verdicts)}].key"),
        ((*verdicts, replace(verdicts[0], key="nobody")), f"actions[{len(verdicts)}].key"),
    ]:
        with pytest.raises(InvalidDecision) as refused:
            dialects.encode(question, wrong)
        assert path in [problem.path for problem in refused.value.problems]


@given(strategies.interrupts, strategies.anything)
def test_any_answer_is_decoded_exactly_or_refused(interrupt: Interrupt, value: Any) -> None:
    question = dialects.recognise(interrupt)
    with suppress(InvalidDecision):
        decoded = dialects.decode(question, value)
        assert decoded.verdicts
        assert dialects.encode(question, decoded.verdicts) == decoded.value


@given(
    strategies.interrupts,
    st.builds(Verdict, st.just("0"), st.sampled_from(Verb), strategies.json, message=strategies.texts),
)
def test_any_verdict_is_encoded_as_json_or_refused(interrupt: Interrupt, verdict: Verdict) -> None:
    question = dialects.recognise(interrupt)
    with suppress(InvalidDecision):
        value = dialects.encode(question, [verdict])
        assert canonical.text(value)
        assert verdict.verb in question.actions[0].allowed


@given(st.text(max_size=5) | strategies.json, strategies.json)
def test_a_raw_question_takes_any_json_but_null_and_the_empty_object(value: Any, answer: Any) -> None:
    question = recognise(value)
    assume(question.dialect == "raw")
    if answer is None or answer == {}:
        with pytest.raises(InvalidDecision):
            dialects.decode(question, answer)
    else:
        assert dialects.decode(question, answer).value == answer
