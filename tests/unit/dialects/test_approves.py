"""Questions that approve something are left to people, also when they imitate other questions."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from assent.kernel import canonical
from assent.review.dialects import approves, breakpoint, recognise, request
from assent.review.model.questions import Interrupt
from assent.review.model.schemas import validation as schemas
from tests.unit.dialects import strategies

ASKED = {"call_id": "c", "question": "Which?", "context": ""}
CLARIFICATION: dict[str, Any] = {"kind": "clarification", "clarifications": [ASKED]}
FORM = {"kind": "form_elicitation", "message": "Seats?", "schema": {"type": "object"}}
CALL = {"action": "pay", "args": {"amount": 5}}
MCP_FORM = {"key": "k", "message": "Seats?", "mode": "form", "requested_schema": {"type": "object"}}
MCP_LINK = {"key": "l", "message": "Sign in", "mode": "url", "url": "https://example.org"}
MCP = {"type": "mcp_elicitation", "tool_name": "book"}
HITL = {
    "action_requests": [{"name": "pay", "args": {}}],
    "review_configs": [{"action_name": "pay", "allowed_decisions": ["approve"]}],
}
TOOL_APPROVAL = {"type": "tool_approval", "tool_call_id": "c", "name": "pay", "args": {}, "description": ""}
CONFIRMATION = {"kind": "confirmation", "tool_calls": [{"call_id": "c", "tool_name": "pay", "arguments": {}}]}
OAUTH = {"kind": "oauth_url", "url": "https://example.org/login", "message": "Sign in", "elicitation_id": "e"}
APPROVED = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
PLAN = {"type": "object", "properties": {"city": {"type": "string"}, "window_seat": {"type": "boolean"}}}


def human(*allowed: str, **more: Any) -> dict[str, Any]:
    flags = {f"allow_{verb}": verb in allowed for verb in ("accept", "edit", "respond", "ignore")}
    return {"action_request": CALL, "config": flags, "description": "x", **more}


def approving(value: Any, schema: Any = None) -> bool:
    return approves(recognise(Interrupt("i", value, schema)))


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("Which city?", None),
        ("", None),
        (7, None),
        (0.5, None),
        (CLARIFICATION, None),
        (human("respond"), None),
        (human("respond", "ignore"), None),
        (human("ignore"), None),
        ([human("respond"), human("ignore")], None),
        (json.dumps(human("respond")), None),
        ({"action_request": CALL, "config": {"allow_respond": True}}, None),
        (FORM, None),
        ({**MCP, "requests": [MCP_FORM]}, None),
        ("How many?", {"type": "integer"}),
        ("Where to?", {"type": "string", "enum": ["Rome", "Oslo"]}),
        ({"plan": {"day": 1}}, PLAN),
        ("Where to?", {"$ref": "#/$defs/Plan", "$defs": {"Plan": PLAN}}),
    ],
)
def test_a_question_that_lets_nothing_happen_approves_nothing(value: Any, schema: Any) -> None:
    assert not approving(value, schema)


@pytest.mark.parametrize(
    "value",
    [
        HITL,
        TOOL_APPROVAL,
        CONFIRMATION,
        OAUTH,
        human("accept"),
        human("edit"),
        human("respond", "edit"),
        human(),
        [human("respond"), human("accept")],
        json.dumps(human("accept")),
        {**MCP, "requests": [MCP_LINK]},
        {**MCP, "requests": [MCP_FORM, MCP_LINK]},
        {"question": "Ship it?"},
        ["Ship it?"],
        True,
        None,
    ],
)
def test_question_that_lets_a_call_run_approves(value: Any) -> None:
    assert approving(value)


def test_a_breakpoint_and_a_request_approve() -> None:
    assert approves(breakpoint.question(["tools"]))
    assert approves(request.question({"type": "change", "title": "x", "payload": {}}))


@pytest.mark.parametrize(
    "value",
    [
        {**CLARIFICATION, **HITL},
        {**CLARIFICATION, "action_requests": []},
        {**CLARIFICATION, "action_request": CALL},
        {**CLARIFICATION, "type": "tool_approval"},
        {**CLARIFICATION, "tool_calls": CONFIRMATION["tool_calls"]},
        {**CLARIFICATION, "unknown": 1},
        {"kind": "clarification", "clarifications": [{**ASKED, "tool_name": "pay"}]},
        {"kind": "clarification", "clarifications": []},
        {"kind": ["clarification"], "clarifications": []},
        {**FORM, "tool_calls": []},
        {**FORM, "unknown": 1},
        {**MCP, "requests": [MCP_FORM], "args": {}},
        {**MCP, "requests": [{**MCP_FORM, "url": "https://example.org"}]},
        human("respond", approve=True),
        human("respond", action_requests=[]),
        {**human("respond"), "action_request": {**CALL, "tool_call_id": "c"}},
        {**human("respond"), "config": {**human("respond")["config"], "allow_approve": True}},
        [human("respond"), "and another"],
        json.dumps(human("respond"))[:-1],
        json.dumps(HITL),
        "  " + json.dumps(CONFIRMATION),
        json.dumps([TOOL_APPROVAL]),
        datetime(2026, 1, 1, tzinfo=UTC),
        {"kind": "assent.in_doubt", "grant_id": "g"},
    ],
)
def test_approval_disguised_as_another_question_approves(value: Any) -> None:
    assert approving(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "boolean"},
        {"type": ["boolean", "string"]},
        {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Yes"}], "$defs": {"Yes": {"const": True}}},
        {"enum": ["later", False]},
        {},
        {"not": {"type": "string"}},
        APPROVED,
        {"$ref": "#/$defs/A", "$defs": {"A": APPROVED}},
        {"anyOf": [{"type": "string"}, APPROVED]},
        {"allOf": [APPROVED]},
        {"type": "object", "properties": {"a": {"enum": [True]}, "b": {"type": "boolean"}}},
        {"$ref": "https://example.org/elsewhere.json"},
        {"patternProperties": {".*": {"type": "boolean"}}},
        {"$ref": "#"},
    ],
)
@pytest.mark.parametrize("value", ["Ship it?", {"plan": 1}, CLARIFICATION, human("respond"), FORM])
def test_schema_that_accepts_a_boolean_approves_in_any_combination(value: Any, schema: Any) -> None:
    assert approving(value, schema)


@pytest.mark.parametrize(
    "value",
    [
        {"name": "pay", "args": {"amount": 5}},
        {"question": "May I?", "tool_calls": []},
        [{"plan": {"tool_name": "pay"}}],
        json.dumps({"question": "May I?"}),
    ],
)
def test_a_call_with_a_response_schema_approves(value: Any) -> None:
    assert approving(value, {"type": "string"})
    assert approving(value)


def many_forms(title: str) -> dict[str, Any]:
    """Each field is another form that could be the answer, and is held against all the others."""
    forms: list[Any] = [{"properties": {f"{name}{number}": {} for name in "abcd"}} for number in range(150)]
    return {"title": title, "allOf": forms, "const": 5}


def steps(monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any]) -> int:
    """How many times a part of the schema is held against a part of an answer until it is known what it takes."""
    taken = [0]
    step = schemas._Budget.step

    def counted(budget: Any, part: Any) -> None:
        taken[0] += 1
        step(budget, part)

    with monkeypatch.context() as patched:
        patched.setattr(schemas._Budget, "step", counted)
        assert approving("Which?", schema)
    return taken[0]


def test_a_schema_that_takes_long_to_check_approves_and_is_checked_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 100 < steps(monkeypatch, many_forms("first")) <= schemas.MAX_STEPS_OF_ALL + schemas.MAX_STEPS
    assert steps(monkeypatch, many_forms("first")) == 0, "it is known by its text"


def test_control_with_a_budget_for_every_answer_such_a_schema_is_checked_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = schemas._compile(canonical.text(many_forms("control")))
    assert isinstance(compiled, schemas._Compiled)
    spent = 0
    for whole in (True, False):
        for number in range(150):
            validator = compiled.fresh(10**9)
            validator.is_valid(dict.fromkeys((f"{name}{number}" for name in "abcd"), whole))
            spent += 10**9 - validator.format_checker.steps
    assert spent > 2 * schemas.MAX_STEPS_OF_ALL


@given(strategies.anything, strategies.objects)
def test_any_question_is_classified_without_an_error(value: Any, schema: Any) -> None:
    assert approves(recognise(Interrupt("i", value, schema))) in (True, False)
