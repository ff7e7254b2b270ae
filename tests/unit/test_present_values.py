"""The present values of what a call changes: from earlier results to the schema, and from there to the page."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import ToolMessage

from assent.assistant import subjects
from assent.review.model.schemas.present import values_now
from assent.review.model.secrets import shown_schema
from assent.review.model.titles import X_TITLE, check, filled
from assent.surfaces.web.renderers.blocks import Diff, Facts
from assent.surfaces.web.views import looks

EVENT = {"event_id": "7", "name": "Stand{up}", "start": "09:00", "location": None, "token": "old"}
SCHEMA = {"type": "object", "properties": {name: {"type": "string"} for name in ("start", "event_id", "token", "name")}}
ARGS = {"event_id": "7", "start": "10:00", "token": "new", "duration_minutes": 30}


def annotated(args: Any = None) -> Any:
    results = [ToolMessage(json.dumps({"events": [EVENT]}), tool_call_id="1")]
    thing = subjects.named_in(args or ARGS, results)
    assert thing is not None
    return subjects.annotated(SCHEMA, "update_event", args or ARGS, thing)


def test_schema_gets_the_present_values_of_what_changes() -> None:
    properties = annotated()["properties"]
    assert properties["start"]["x-now"] == "09:00"
    assert all("x-now" not in properties[name] for name in ("event_id", "token", "name"))
    assert "x-now" not in SCHEMA["properties"]["start"]  # type: ignore[index]


def test_title_says_what_changes_and_follows_an_edit() -> None:
    title = check(annotated()[X_TITLE])
    assert filled(title, ARGS) == "update_event: “Stand(up)”, start: 09:00 → 10:00"
    assert filled(title, {**ARGS, "start": "11:00"}) == "update_event: “Stand(up)”, start: 09:00 → 11:00"
    assert annotated({"event_id": "7"})[X_TITLE] == "update_event: “Stand(up)”, 09:00"


def test_unknown_object_has_no_present_values() -> None:
    assert subjects.named_in({"event_id": "8"}, [ToolMessage("[]", tool_call_id="1")]) is None


def test_values_that_stay_are_left_out() -> None:
    assert values_now(annotated(), {**ARGS, "start": "09:00"}) == {}
    assert values_now(None, ARGS) == values_now({"properties": {"start": True}}, ARGS) == {}


def test_page_shows_both_values_and_all_other_arguments() -> None:
    action = {"key": "0", "name": "tool", "args": ARGS, "schema": annotated(), "cautions": []}
    diff, facts = looks._changes(action, with_rest=True)
    assert isinstance(diff, Diff)
    assert isinstance(facts, Facts)
    assert diff.label == looks.AGENT_SAYS  # the values came with the question
    assert [(change.path, change.old, change.new) for change in diff.changes] == [("start", '"09:00"', '"10:00"')]
    assert [fact.label for fact in facts.rows] == ["event_id", "token", "duration_minutes"]


def test_present_value_of_a_secret_field_is_dropped() -> None:
    schema = {"properties": {"pin": {"x-now": "1234"}, "code": {"x-secret": True, "x-now": "5678"}}}
    assert "1234" not in json.dumps(shown_schema(schema))
    assert "5678" not in json.dumps(shown_schema(schema))
