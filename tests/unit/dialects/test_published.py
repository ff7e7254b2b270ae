"""The Agent Inbox types for other languages say what the Python ones say."""

from __future__ import annotations

from typing import Any

import pytest

from assent.review.dialects import published
from assent.review.model.schemas import validation as schemas

REQUEST: dict[str, Any] = {
    "action_request": {"action": "go", "args": {"n": 1}},
    "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": False, "allow_accept": False},
    "description": None,
}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in REQUEST.items() if name != key}


@pytest.mark.parametrize("value", [REQUEST, [REQUEST], without("description"), {**REQUEST, "description": "# hi"}])
def test_requests_fit_the_json_schema(value: Any) -> None:
    assert schemas.defect(published.json_schema()) is None
    assert schemas.problems(published.json_schema(), value) == ()


@pytest.mark.parametrize(
    "value", [without("config"), without("action_request"), {**REQUEST, "description": 3}, "x", [5]]
)
def test_other_values_do_not_fit_the_json_schema(value: Any) -> None:
    assert schemas.problems(published.json_schema(), value)


@pytest.mark.parametrize(
    ("response", "fits"),
    [
        ({"type": "accept", "args": {"action": "go", "args": {}}}, True),
        ({"type": "response", "args": "text"}, True),
        ({"type": "ignore", "args": None}, True),
        ({"type": "approve", "args": None}, False),
        ({"type": "ignore"}, False),
        ({"type": "edit", "args": {"action": "go"}}, False),
    ],
)
def test_responses_have_their_definition(response: Any, fits: bool) -> None:
    schema = {"$ref": "#/$defs/HumanResponse", "$defs": published.json_schema()["$defs"]}
    assert (schemas.problems(schema, response) == ()) is fits


def test_typescript_has_the_same_interfaces() -> None:
    text = published.typescript()
    assert [line for line in text.splitlines() if line.startswith("export")] == [
        "export interface HumanInterruptConfig {",
        "export interface ActionRequest {",
        "export interface HumanInterrupt {",
        "export interface HumanResponse {",
    ]
    assert "  description?: string | null;" in text
    assert '  type: "accept" | "ignore" | "response" | "edit";' in text
    assert "  args: string | ActionRequest | null;" in text
    assert "  args: Record<string, any>;" in text
