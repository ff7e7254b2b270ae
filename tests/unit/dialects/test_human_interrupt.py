"""Agent Inbox's dialect, over graphs that really stop."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from assent.errors import InvalidAnswer, InvalidDecision, Problem
from assent.review import dialects
from assent.review.dialects.human_interrupt import ActionRequest, HumanInterrupt, HumanInterruptConfig, HumanResponse
from assent.review.model.questions import Interrupt, ItemType, Question, Verb, Verdict
from tests.unit.dialects.pausing import Asking

ARGS = {"to": "a@b.c", "amount": 598, "rate": 1.0, "tags": ["x"], "cc": None, "big": 2**60 + 1}
FLAGS = {"accept": Verb.APPROVE, "edit": Verb.EDIT, "respond": Verb.RESPOND, "ignore": Verb.IGNORE}


def request(action: str = "send_email", **flags: bool) -> HumanInterrupt:
    chosen: dict[str, Any] = {f"allow_{flag}": flags.get(flag, True) for flag in FLAGS}
    return {
        "action_request": {"action": action, "args": dict(ARGS)},
        "config": HumanInterruptConfig(**chosen),  # type: ignore[typeddict-item]
        "description": "# Please\nlook",
    }


def recognise(value: Any) -> Question:
    return dialects.recognise(Interrupt("i", value))


@pytest.mark.promise("INBOX-09")
def test_types_for_agent_authors_can_be_imported() -> None:
    asked: ActionRequest = {"action": "go", "args": {"n": 1}}
    config = HumanInterruptConfig(allow_ignore=True, allow_respond=False, allow_edit=False, allow_accept=True)
    given: HumanInterrupt = {"action_request": asked, "config": config}
    response: HumanResponse = {"type": "accept", "args": asked}
    assert recognise(given).actions[0].allowed == (Verb.APPROVE, Verb.IGNORE)
    assert dialects.encode(recognise(given), [Verdict("0", Verb.APPROVE)]) == [response]


def test_the_request_becomes_one_action() -> None:
    question = recognise(request())
    assert (question.dialect, question.type, question.title) == ("human_interrupt", ItemType.TOOL, "send_email")
    assert question.description == "# Please\nlook"
    [action] = question.actions
    assert action.args == ARGS
    assert action.args_text == '{"amount":598,"big":1152921504606846977,"cc":null,"rate":1.0,"tags":["x"],"to":"a@b.c"}'
    assert set(action.allowed) == set(FLAGS.values())
    assert question.problems == ()


@pytest.mark.promise("INBOX-11", "INBOX-16", "INBOX-21")
def test_accept_returns_the_request_itself() -> None:
    asking = Asking(request())
    sent = asking.decide(Verdict("0", Verb.APPROVE))
    assert asking.received == sent == [{"type": "accept", "args": {"action": "send_email", "args": ARGS}}]
    assert json.dumps(asking.received[0]["args"]) == json.dumps(request()["action_request"])
    assert asking.received[0]["type"] == "accept"
    assert asking.finished


@pytest.mark.promise("INBOX-12", "INBOX-16")
def test_edit_returns_the_request_with_the_edits() -> None:
    asking = Asking(request())
    asking.decide(Verdict("0", Verb.EDIT, args={**ARGS, "amount": 600, "rate": 2.5}))
    edited = {"action": "send_email", "args": {**ARGS, "amount": 600, "rate": 2.5}}
    assert asking.received == [{"type": "edit", "args": edited}]


@pytest.mark.promise("INBOX-13", "INBOX-16")
def test_respond_returns_one_string() -> None:
    asking = Asking(request())
    asking.decide(Verdict("0", Verb.RESPOND, message="Later, please"))
    assert asking.received == [{"type": "response", "args": "Later, please"}]


@pytest.mark.promise("INBOX-14", "INBOX-16")
def test_ignore_returns_null() -> None:
    asking = Asking(request())
    asking.decide(Verdict("0", Verb.IGNORE))
    assert asking.received == [{"type": "ignore", "args": None}]


VERDICTS = {
    Verb.APPROVE: Verdict("0", Verb.APPROVE),
    Verb.EDIT: Verdict("0", Verb.EDIT, args={"to": "x"}),
    Verb.RESPOND: Verdict("0", Verb.RESPOND, message="hm"),
    Verb.IGNORE: Verdict("0", Verb.IGNORE),
}


@pytest.mark.parametrize("flags", list(itertools.product([True, False], repeat=4)))
def test_each_combination_of_flags_allows_exactly_its_verbs(flags: tuple[bool, ...]) -> None:
    question = recognise(request("go", **dict(zip(FLAGS, flags, strict=True))))
    allowed = {verb for verb, flag in zip(FLAGS.values(), flags, strict=True) if flag}
    assert set(question.actions[0].allowed) == allowed
    for verb, verdict in VERDICTS.items():
        if verb in allowed:
            value = dialects.encode(question, [verdict])
            assert dialects.decode(question, value) == dialects.Decoded((verdict,), value)
        else:
            with pytest.raises(InvalidDecision) as refused:
                dialects.encode(question, [verdict])
            assert [problem.path for problem in refused.value.problems] == ["actions[0].verb"]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(request(), id="alone"),
        pytest.param([request()], id="list"),
        pytest.param((request(),), id="tuple"),
        pytest.param(json.dumps(request()), id="text"),
        pytest.param(json.dumps([request()]), id="text of a list"),
    ],
)
def test_lists_and_json_texts_are_the_same_request(value: Any) -> None:
    asking = Asking(value)
    assert asking.question.title == "send_email"
    asking.decide(Verdict("0", Verb.APPROVE))
    assert asking.received == [{"type": "accept", "args": request()["action_request"]}]


def test_several_requests_get_one_response_each_in_their_order() -> None:
    asking = Asking([request("first"), request("second", ignore=False)])
    assert asking.question.title == "first, second"
    asking.decide(Verdict("1", Verb.RESPOND, message="no"), Verdict("0", Verb.IGNORE))
    assert [response["type"] for response in asking.received] == ["ignore", "response"]


def test_unknown_fields_of_a_request_are_returned_with_it() -> None:
    value: Any = request()
    value["action_request"]["ticket"] = 7
    sent = dialects.encode(recognise(value), [Verdict("0", Verb.APPROVE)])
    assert sent == [{"type": "accept", "args": {"action": "send_email", "args": ARGS, "ticket": 7}}]


def test_an_edit_may_name_another_action() -> None:
    sent = dialects.encode(recognise(request()), [Verdict("0", Verb.EDIT, args={}, name="draft_email")])
    assert sent == [{"type": "edit", "args": {"action": "draft_email", "args": {}}}]


def test_changed_arguments_can_be_sent_as_texts_for_old_graphs() -> None:
    edit = Verdict("0", Verb.EDIT, args={**ARGS, "amount": 600, "tags": ["x", "y"], "to": "b"})
    [sent] = dialects.encode(recognise(request()), [edit], stringify_args=True)
    assert sent["args"]["args"] == {**ARGS, "amount": "600", "tags": '["x","y"]', "to": "b"}
    approved = dialects.encode(recognise(request()), [Verdict("0", Verb.APPROVE)], stringify_args=True)
    assert approved[0]["args"]["args"] == ARGS


@pytest.mark.parametrize(
    ("resume", "verdict", "sent"),
    [
        ([{"type": "accept", "args": None}], VERDICTS[Verb.APPROVE], {"action": "send_email", "args": ARGS}),
        ([{"type": "accept"}], VERDICTS[Verb.APPROVE], {"action": "send_email", "args": ARGS}),
        (
            [{"type": "accept", "args": {"action": "send_email", "args": {**ARGS, "rate": 1}}}],
            VERDICTS[Verb.APPROVE],
            {"action": "send_email", "args": ARGS},
        ),
        (
            [{"type": "edit", "args": {"args": {"to": "x"}}}],
            VERDICTS[Verb.EDIT],
            {"action": "send_email", "args": {"to": "x"}},
        ),
        ([{"type": "response", "args": "hm"}], VERDICTS[Verb.RESPOND], "hm"),
        ([{"type": "ignore"}], VERDICTS[Verb.IGNORE], None),
    ],
)
def test_fields_that_stock_clients_omit_are_filled_in(resume: Any, verdict: Verdict, sent: Any) -> None:
    asking = Asking(request())
    decoded = dialects.decode(asking.question, resume)
    assert decoded.verdicts == (verdict,)
    asking.answer(resume, gated=[asking.interrupts[0].id])
    assert asking.received == [{"type": resume[0]["type"], "args": sent}]


@pytest.mark.parametrize(
    ("resume", "path"),
    [
        ({"type": "accept"}, ""),
        ("yes", ""),
        ([], ""),
        ([{"type": "accept"}, {"type": "accept"}], "[1]"),
        ([{"type": "approve"}], "[0].type"),
        ([{}], "[0].type"),
        (["accept"], "[0]"),
        ([{"type": "accept", "args": {"action": "send_email", "args": {**ARGS, "to": "thief"}}}], "[0].args"),
        ([{"type": "accept", "args": {"action": "wire", "args": ARGS}}], "[0].args"),
        ([{"type": "accept", "args": "ok"}], "[0].args"),
        ([{"type": "edit"}], "[0].args"),
        ([{"type": "edit", "args": {"action": "x"}}], "[0].args.args"),
        ([{"type": "edit", "args": {"action": 1, "args": {}}}], "[0].args.action"),
        ([{"type": "response", "args": None}], "[0].args"),
        ([{"type": "response", "args": " "}], "[0].args"),
        ([{"type": "ignore", "args": "because"}], "[0].args"),
    ],
)
def test_other_answers_are_named_refused_where_gated_and_passed_on_where_advisory(resume: Any, path: str) -> None:
    asking = Asking(request())
    with pytest.raises(InvalidAnswer) as refused:
        asking.answer(resume, gated=[asking.interrupts[0].id])
    assert path in [problem.path for problem in refused.value.problems]
    [answer] = dialects.check_resume(asking.interrupts, resume).values()
    assert not answer.decoded
    assert answer.problems == refused.value.problems
    assert answer.value == resume
    asking.decide(Verdict("0", Verb.APPROVE))
    assert asking.finished


def broken(**changes: Any) -> Any:
    value: Any = request()
    for path, change in changes.items():
        *parents, last = path.split("__")
        target = value
        for parent in parents:
            target = target[parent]
        if change is ...:
            del target[last]
        else:
            target[last] = change
    return value


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        (broken(action_request=...), {"action_request"}),
        (broken(config=...), {"config"}),
        (broken(config={}), {f"config.allow_{flag}" for flag in FLAGS}),
        (broken(action_request__args=...), {"action_request.args"}),
        (broken(action_request__args="x"), {"action_request.args"}),
        (broken(action_request__args=[1], action_request__action=3), {"action_request.args", "action_request.action"}),
        (broken(action_request=None, config=[]), {"action_request", "config"}),
        (broken(config__allow_edit="yes"), {"config.allow_edit"}),
        (broken(description=5), {"description"}),
        ([request(), broken(config__allow_accept=1)], {"[1].config.allow_accept"}),
        ([request(), "x"], {"[1]"}),
        ('{"action_request": {}, "action_request": {}}', {"action_request"}),
        ('{"action_request": ', {""}),
    ],
)
def test_a_malformed_request_is_shown_raw_and_says_what_is_wrong_in_each_field(value: Any, problems: set[str]) -> None:
    question = recognise(value)
    assert question.dialect == "raw"
    assert {problem.path for problem in question.problems} == problems
    assert all(problem.message for problem in question.problems)


def test_missing_flag_allows_nothing_and_is_reported() -> None:
    question = recognise(broken(config__allow_edit=...))
    assert question.dialect == "human_interrupt"
    assert Verb.EDIT not in question.actions[0].allowed
    assert question.problems == (Problem("config.allow_edit", "is missing and taken as false"),)


def test_expiry_ignores_and_feedback_responds_where_the_flags_allow_it() -> None:
    question = recognise(request())
    assert dialects.negative(question, "expired") == (Verdict("0", Verb.IGNORE),)
    assert dialects.feedback(question, "shorter") == (Verdict("0", Verb.RESPOND, message="shorter"),)
    assert dialects.negative(recognise(request(ignore=False)), "expired") is None
    assert dialects.feedback(recognise(request(respond=False)), "shorter") is None
    assert dialects.feedback(recognise([request(), request(respond=False)]), "shorter") is None
