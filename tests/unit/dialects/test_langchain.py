"""LangChain's own middleware, batched and per call: what it asks, what it gets back, and what it then does."""

from __future__ import annotations

from typing import Any

import pytest

from assent.errors import InvalidAnswer, InvalidDecision, Problem
from assent.review import dialects
from assent.review.model.questions import Interrupt, ItemType, Verb, Verdict
from tests.unit.dialects.pausing import Agent

SEND = ("send", {"to": "ann", "amount": 598})
DELETE = ("delete", {"path": "/tmp/x"})
ALL = {"approve", "edit", "reject", "respond"}
MODES = ["batched", "per_call"]


def only(*decisions: str, **more: Any) -> dict[str, Any]:
    return {"allowed_decisions": list(decisions), **more}


@pytest.mark.promise("HITL-08", "HITL-11", "HITL-16")
def test_batched_asks_once_for_all_calls_of_a_turn() -> None:
    agent = Agent(SEND, DELETE, on={"send": True, "delete": only("approve", "reject")})
    question = agent.question
    assert (question.dialect, question.type, question.title) == ("hitl_request", ItemType.TOOL, "send, delete")
    assert [(action.key, action.name, action.args) for action in question.actions] == [("0", *SEND), ("1", *DELETE)]
    assert question.actions[0].args_text == '{"amount":598,"to":"ann"}'
    assert [set(action.allowed) for action in question.actions] == [ALL, {"approve", "reject"}]
    description = f"Tool execution requires approval\n\nTool: send\nArgs: {SEND[1]}"
    assert question.actions[0].description == description
    assert question.problems == ()


@pytest.mark.promise("HITL-26")
def test_per_call_asks_for_each_call_by_itself() -> None:
    agent = Agent(SEND, DELETE, on={"send": True, "delete": only("reject", "approve")}, mode="per_call")
    send, delete = map(dialects.recognise, agent.interrupts)
    assert [(each.dialect, each.title, each.actions[0].call_id) for each in (send, delete)] == [
        ("tool_approval", "send", "call-0"),
        ("tool_approval", "delete", "call-1"),
    ]
    assert (set(send.actions[0].allowed), set(delete.actions[0].allowed)) == (ALL, {"approve", "reject"})
    assert send.actions[0].schema["properties"]["amount"]["type"] == "number"
    assert delete.actions[0].schema is None
    assert send.problems == delete.problems == ()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.promise("HITL-03", "HITL-17")
def test_approve_runs_the_call_unchanged(mode: str) -> None:
    agent = Agent(SEND, on={"send": True}, mode=mode)
    sent = agent.decide(Verdict("0", Verb.APPROVE))
    assert sent == {"decisions": [{"type": "approve"}]} if mode == "batched" else {"type": "approve"}
    assert agent.ran == [("send", ("ann", 598))]
    assert agent.finished


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.promise("HITL-04", "HITL-18")
def test_edit_runs_the_call_with_other_arguments(mode: str) -> None:
    agent = Agent(SEND, on={"send": only("edit")}, mode=mode)
    sent = agent.decide(Verdict("0", Verb.EDIT, args={"to": "bob", "amount": 1.5}))
    edit = {"type": "edit", "edited_action": {"name": "send", "args": {"to": "bob", "amount": 1.5}}}
    assert sent == {"decisions": [edit]} if mode == "batched" else edit
    assert agent.ran == [("send", ("bob", 1.5))]


@pytest.mark.promise("HITL-04")
def test_a_batched_edit_may_call_another_tool() -> None:
    agent = Agent(SEND, on={"send": True})
    agent.decide(Verdict("0", Verb.EDIT, args={"path": "/tmp/y"}, name="delete"))
    assert agent.ran == [("delete", "/tmp/y")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.promise("HITL-05", "HITL-19", "HITL-22")
def test_reject_runs_nothing_and_tells_the_model_why(mode: str) -> None:
    agent = Agent(SEND, on={"send": True}, mode=mode)
    agent.decide(Verdict("0", Verb.REJECT, message="too much"))
    assert agent.ran == []
    assert "with reason: too much" in agent.results["call-0"]
    assert agent.finished


@pytest.mark.parametrize("mode", MODES)
def test_reject_needs_no_reason(mode: str) -> None:
    agent = Agent(SEND, on={"send": True}, mode=mode)
    agent.decide(Verdict("0", Verb.REJECT, message=""))
    assert agent.ran == []
    assert "rejected" in agent.results["call-0"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.promise("HITL-26")
def test_respond_replaces_the_result_of_the_tool(mode: str) -> None:
    agent = Agent(SEND, on={"send": True}, mode=mode)
    agent.decide(Verdict("0", Verb.RESPOND, message="already done by hand"))
    assert agent.ran == []
    assert agent.results["call-0"] == "already done by hand"


@pytest.mark.promise("HITL-20", "HITL-21", "HITL-22")
def test_a_mixed_batch_does_what_each_verdict_says_and_runs_the_rest() -> None:
    calls: list[Any] = [SEND, DELETE, ("send", {"to": "bob"}), ("send", {"to": "eve"}), ("delete", {"path": "/free"})]
    when = {"allowed_decisions": ["approve", "reject"], "when": lambda call: call.tool_call["args"]["path"] != "/free"}
    agent = Agent(*calls, on={"send": True, "delete": when})
    assert len(agent.question.actions) == 4
    agent.decide(
        Verdict("3", Verb.REJECT, message="not her"),
        Verdict("1", Verb.APPROVE),
        Verdict("2", Verb.EDIT, args={"to": "bill"}),
        Verdict("0", Verb.APPROVE),
    )
    expected = {("send", ("ann", 598)), ("delete", "/tmp/x"), ("send", ("bill", 0)), ("delete", "/free")}
    assert set(agent.ran) == expected
    assert len(agent.ran) == 4
    assert set(agent.results) == {f"call-{i}" for i in range(5)}
    assert "not her" in agent.results["call-3"]


def test_per_call_interrupts_are_answered_one_by_one() -> None:
    agent = Agent(SEND, DELETE, on={"send": True, "delete": True}, mode="per_call")
    first, second = agent.interrupts
    agent.resume({second.id: dialects.encode(dialects.recognise(second), [Verdict("0", Verb.APPROVE)])})
    assert agent.ran == [("delete", "/tmp/x")]
    assert [each.id for each in agent.interrupts] == [first.id]
    agent.decide(Verdict("0", Verb.REJECT))
    assert agent.ran == [("delete", "/tmp/x")]
    assert agent.finished


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.promise("HITL-06", "HITL-09")
def test_a_decision_that_is_not_allowed_is_refused_and_the_call_stays_answerable(mode: str) -> None:
    agent = Agent(SEND, on={"send": only("approve", "reject")}, mode=mode)
    for verdict in (Verdict("0", Verb.EDIT, args={"to": "eve"}), Verdict("0", Verb.RESPOND, message="hi")):
        with pytest.raises(InvalidDecision) as refused:
            agent.decide(verdict)
        assert refused.value.problems == (
            Problem("actions[0].verb", f"{verdict.verb} is not allowed here, only approve, reject"),
        )
    respond: dict[str, Any] = {"type": "respond", "message": "hi"}
    with pytest.raises(InvalidAnswer, match="type: respond is not allowed here"):
        agent.answer({"decisions": [respond]} if mode == "batched" else respond)
    agent.decide(Verdict("0", Verb.APPROVE))
    assert agent.ran == [("send", ("ann", 598))]


@pytest.mark.parametrize(
    ("resume", "path"),
    [
        ({"decisions": [{"type": "approve"}]}, "decisions"),
        ({"decisions": [{"type": "approve"}] * 3}, "decisions[2]"),
        ({"decisions": []}, "decisions"),
        ({"decisions": {"0": "approve"}}, "decisions"),
        ({"answers": []}, "decisions"),
        ([{"type": "approve"}, {"type": "approve"}], ""),
        ("approve", ""),
        ({"decisions": [{"type": "approve"}, "approve"]}, "decisions[1]"),
        ({"decisions": [{"type": "approve"}, {"type": "accept"}]}, "decisions[1].type"),
        ({"decisions": [{"type": "approve"}, {}]}, "decisions[1].type"),
        ({"decisions": [{"type": "edit"}, {"type": "approve"}]}, "decisions[0].edited_action"),
        ({"decisions": [{"type": "edit", "edited_action": {"name": "send"}}]}, "decisions[0].edited_action.args"),
        ({"decisions": [{"type": "edit", "edited_action": {"args": {}}}]}, "decisions[0].edited_action.name"),
        ({"decisions": [{"type": "approve", "edited_action": {}}]}, "decisions[0].edited_action"),
        ({"decisions": [{"type": "approve", "message": "but only once"}] * 2}, "decisions[0].message"),
        ({"decisions": [{"type": "respond"}, {"type": "approve"}]}, "decisions[0].message"),
        ({"decisions": [{"type": "reject", "message": 5}, {"type": "approve"}]}, "decisions[0].message"),
    ],
)
@pytest.mark.promise("HITL-07")
def test_a_wrong_answer_to_a_batch_is_refused_even_on_advisory_items(resume: Any, path: str) -> None:
    agent = Agent(SEND, DELETE, on={"send": True, "delete": True})
    with pytest.raises(InvalidAnswer) as refused:
        agent.answer(resume)
    assert path in [problem.path for problem in refused.value.problems]
    agent.answer({"decisions": [{"type": "approve"}, {"type": "reject"}]})
    assert agent.ran == [("send", ("ann", 598))]


def test_unchecked_the_same_wrong_answer_breaks_the_thread_for_good() -> None:
    """The control: this is why nothing but an exact answer passes."""
    agent = Agent(SEND, DELETE, on={"send": True, "delete": True})
    [pending] = agent.interrupts
    with pytest.raises(ValueError, match="does not match"):
        agent.resume({pending.id: {"decisions": [{"type": "approve"}]}})
    with pytest.raises(ValueError, match="does not match"):
        agent.resume({pending.id: {"decisions": [{"type": "approve"}, {"type": "approve"}]}})
    assert agent.ran == []


@pytest.mark.parametrize(
    ("resume", "path"),
    [
        ({"type": "edit", "edited_action": {"name": "delete", "args": {"path": "/"}}}, "edited_action.name"),
        ({"type": "edit", "edited_action": {"name": "send", "args": {"to": 5}}}, "edited_action.args.to"),
        ({"type": "edit", "edited_action": {"name": "send", "args": {}}}, "edited_action.args.to"),
        ({"type": "accept"}, "type"),
        ({"decisions": [{"type": "approve"}]}, "type"),
        ("approve", ""),
    ],
)
def test_a_wrong_answer_to_a_call_is_refused_and_named(resume: Any, path: str) -> None:
    agent = Agent(SEND, on={"send": True}, mode="per_call")
    with pytest.raises(InvalidAnswer) as refused:
        agent.answer(resume)
    assert path in [problem.path for problem in refused.value.problems]
    agent.answer({"type": "approve"})
    assert agent.ran == [("send", ("ann", 598))]


def test_an_edit_of_a_call_must_fit_the_tool_s_schema_and_keep_its_name() -> None:
    agent = Agent(SEND, on={"send": True}, mode="per_call")
    for verdict, path in [
        (Verdict("0", Verb.EDIT, args={"to": "x", "amount": "much"}), "actions[0].args.amount"),
        (Verdict("0", Verb.EDIT, args={"path": "/"}, name="delete"), "actions[0].name"),
    ]:
        with pytest.raises(InvalidDecision) as refused:
            agent.decide(verdict)
        assert [problem.path for problem in refused.value.problems] == [path]
    agent.decide(Verdict("0", Verb.EDIT, args={"to": "x"}, name="send"))
    assert agent.ran == [("send", ("x", 0))]


def test_without_its_schema_a_call_offers_all_decisions() -> None:
    """Some servers pass interrupts on as `{id, value}` only."""
    agent = Agent(SEND, on={"send": only("approve")}, mode="per_call")
    [pending] = agent.interrupts
    question = dialects.recognise(Interrupt(pending.id, pending.value))
    assert set(question.actions[0].allowed) == ALL


@pytest.mark.parametrize("mode", MODES)
def test_expiry_and_revision_reject_with_the_given_reason(mode: str) -> None:
    agent = Agent(SEND, on={"send": True}, mode=mode)
    verdicts = dialects.negative(agent.question, "expired: nobody decided in 7 days")
    assert verdicts is not None
    assert dialects.feedback(agent.question, "ask Bob first") == (Verdict("0", Verb.REJECT, message="ask Bob first"),)
    agent.decide(*verdicts)
    assert "expired: nobody decided" in agent.results["call-0"]
    without = Agent(SEND, on={"send": only("approve", "respond")}, mode=mode).question
    assert dialects.negative(without, "expired") is dialects.feedback(without, "x") is None


def hitl(**changes: Any) -> dict[str, Any]:
    value = {
        "action_requests": [{"name": "a", "args": {}}, {"name": "b", "arguments": {"n": 1}}],
        "review_configs": [
            {"action_name": "a", "allowed_decisions": ["approve"]},
            {"action_name": "b", "allowed_decisions": ["reject"], "args_schema": {"required": ["n"]}},
        ],
    }
    return {**value, **changes}


def test_configs_are_matched_by_position_and_else_by_name() -> None:
    swapped = hitl(review_configs=hitl()["review_configs"][::-1])
    for value in (hitl(), swapped):
        question = dialects.recognise(Interrupt("i", value))
        assert [action.allowed for action in question.actions] == [(Verb.APPROVE,), (Verb.REJECT,)]
        assert question.actions[1].schema == {"required": ["n"]}
        assert question.actions[1].args == {"n": 1}


def test_single_config_applies_to_all_calls_of_its_name() -> None:
    requests = [{"name": "a", "args": {"n": n}} for n in range(3)]
    question = dialects.recognise(
        Interrupt("i", hitl(action_requests=requests, review_configs=hitl()["review_configs"][:1]))
    )
    assert [action.allowed for action in question.actions] == [(Verb.APPROVE,)] * 3


def test_an_edit_must_fit_the_args_schema_of_its_config() -> None:
    configs = [
        {"action_name": "a", "allowed_decisions": ["edit"], "args_schema": {"properties": {"n": {"type": "integer"}}}}
    ]
    value = hitl(action_requests=[{"name": "a", "args": {"n": 1}}], review_configs=configs)
    question = dialects.recognise(Interrupt("i", value))
    with pytest.raises(InvalidDecision) as refused:
        dialects.encode(question, [Verdict("0", Verb.EDIT, args={"n": "1"})])
    assert refused.value.problems == (Problem("actions[0].args.n", "must be integer"),)


def test_decision_type_of_a_later_version_is_reported() -> None:
    configs = [{"action_name": "a", "allowed_decisions": ["approve", "postpone"]}]
    value = hitl(action_requests=[{"name": "a", "args": {}}], review_configs=configs)
    question = dialects.recognise(Interrupt("i", value))
    assert question.actions[0].allowed == (Verb.APPROVE,)
    assert question.problems == (Problem("review_configs[0].allowed_decisions", '"postpone" is not supported'),)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (hitl(action_requests=[]), "action_requests"),
        (hitl(action_requests="x"), "action_requests"),
        (hitl(action_requests=[5]), "action_requests[0]"),
        (hitl(action_requests=[{"name": "a"}]), "action_requests[0].args"),
        (hitl(action_requests=[{"name": 1, "args": {}}]), "action_requests[0].name"),
        (hitl(action_requests=[{"name": "c", "args": {}}]), "action_requests[0].name"),
        (hitl(action_requests=[{"name": "a", "args": {}, "description": {}}]), "action_requests[0].description"),
        (hitl(review_configs=None), "review_configs"),
        (hitl(review_configs=[{"action_name": "a"}]), "review_configs[0].allowed_decisions"),
        (hitl(review_configs=[{"action_name": "a", "allowed_decisions": []}]), "review_configs[0].allowed_decisions"),
        (hitl(review_configs=[{"allowed_decisions": ["approve"]}]), "review_configs[0].action_name"),
        ({"action_requests": [{"name": "a", "args": {}}]}, "review_configs"),
        ({"type": "tool_approval", "name": "a", "args": {}}, "tool_call_id"),
        ({"type": "tool_approval", "name": "a", "args": [], "tool_call_id": "1"}, "args"),
        ({"type": "tool_approval", "name": None, "args": {}, "tool_call_id": "1"}, "name"),
    ],
)
def test_a_malformed_request_is_shown_raw_with_its_problems(value: Any, path: str) -> None:
    question = dialects.recognise(Interrupt("i", value))
    assert question.dialect == "raw"
    assert path in [problem.path for problem in question.problems]


def javascript(*words: str, **more: Any) -> Any:
    """The question of LangChain for JavaScript about one call."""
    config = {"actionName": "send", "allowedDecisions": list(words), **more}
    asked = {"actionRequests": [{"name": "send", "args": SEND[1], "description": "Send?"}], "reviewConfigs": [config]}
    return dialects.recognise(Interrupt("i", asked))


def test_question_of_javascript_is_the_same_question() -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    question = javascript("approve", "edit", argsSchema=schema)
    [action] = question.actions
    assert (question.dialect, action.name, action.args, action.description) == ("hitl_request", *SEND, "Send?")
    assert (action.allowed, action.schema) == ((Verb.APPROVE, Verb.EDIT), schema)
    assert question.problems == ()


def test_answer_to_javascript_has_its_names() -> None:
    question = javascript("approve", "edit", "reject")
    edited = [Verdict("0", Verb.EDIT, args={"to": "bob"})]
    sent = {"decisions": [{"type": "edit", "editedAction": {"name": "send", "args": {"to": "bob"}}}]}
    assert dialects.encode(question, edited) == sent
    assert dialects.decode(question, sent).verdicts == tuple(edited)
    with pytest.raises(InvalidDecision) as refused:
        dialects.decode(question, {"decisions": [{"type": "edit", "edited_action": {"name": "send", "args": {}}}]})
    assert [problem.path for problem in refused.value.problems] == ["decisions[0].editedAction"]


def test_flaw_in_a_question_of_javascript_names_its_field() -> None:
    question = javascript()
    assert question.dialect == "raw"
    assert [problem.path for problem in question.problems] == ["reviewConfigs[0].allowedDecisions"]
