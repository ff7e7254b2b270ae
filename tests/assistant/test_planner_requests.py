"""The planner over the requests in tests/assistant/requests, which were written without looking at its rules.

They are led through a calendar in a list, which is much faster than the calendar's server; `test_evaluation.py` has the
command with the server.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from assent.assistant.evaluation import requests
from assent.assistant.evaluation.grades import Grade, Outcome, Proposal, grade
from assent.assistant.evaluation.report import Graded, scores
from assent.assistant.evaluation.requests import Request, SetUp
from assent.assistant.planner.routing import route
from tests.assistant.planner_talk import APPROVED, TOOLS, Talk, event, schema

FOLDER = Path(__file__).parent / "requests"
MEASURED = {
    "english": (98.0, 0),
    "chinese": (98.0, 0),
    "more": (97.0, 0),
    "everyday": (97.0, 0),
    "denied": (100.0, 0),
}
"""At least this percentage right or sensibly asked, and at most so many harmful proposals. In `denied`, nothing may be
proposed: questions, denials, reported speech, what is past, and words that are not known."""

TEXT = {"type": "string"}
MORE: dict[str, dict[str, Any]] = {
    "create_event": {"attendees": {"type": "array", "items": TEXT}, "equipment": TEXT},
    "update_event": {"attendees": {"type": "array", "items": TEXT}},
    "book_room": {"equipment": TEXT},
}
CLARIFY, MAPS = "request_clarification", {"search_places", "get_directions"}


def _schemas() -> list[dict[str, Any]]:
    functions = [tool["function"] for tool in TOOLS]
    schemas = [
        schema(
            each["name"],
            each["description"],
            each["parameters"]["required"],
            **each["parameters"]["properties"],
            **MORE.get(each["name"], {}),
        )
        for each in functions
    ]
    return [*schemas, schema("delete_event", "Delete an event.", ["event_id"], calendar_id={}, event_id={})]


SCHEMAS = _schemas()


class Trial(Talk):
    """A conversation whose proposals are collected; they are carried out where more are expected."""

    def outcome_of(self, text: str, *, calls: int) -> Outcome:
        self.tools = [tool for tool in SCHEMAS if self._permitted(tool["function"]["name"], text)]
        proposals: list[Proposal] = []
        message = self.say(text)
        while True:
            asked = [call["args"]["question"] for call in message.tool_calls if call["name"] == CLARIFY]
            proposals += [self._proposal(call) for call in message.tool_calls if call["name"] in APPROVED]
            if asked or not message.tool_calls:
                return self._ended(message, asked, proposals)
            if len(proposals) >= calls:
                return Outcome(None, tuple(proposals))
            message = self.approve()

    def _permitted(self, tool: str, text: str) -> bool:
        needed = "maps" if tool in MAPS else "calendar"
        return tool == CLARIFY or needed in route(text, lambda: self.now)

    def _proposal(self, call: Any) -> Proposal:
        known = next((each for each in self.events if each["event_id"] == call["args"].get("event_id")), None)
        if known is None:
            return Proposal(call["name"], call["args"])
        start, end = (datetime.fromisoformat(known[name]) for name in ("start", "end"))
        present = {**known, "duration_minutes": (end - start) // timedelta(minutes=1)}
        changing = {name: value for name, value in call["args"].items() if value != present.get(name)}
        return Proposal(call["name"], changing, known["name"], start)

    def _ended(self, message: AIMessage, asked: list[str], proposals: list[Proposal]) -> Outcome:
        text = str(message.content)
        asks = not proposals and text.rstrip().endswith(("?", "？"))
        question = " ".join(asked) or (text if asks else None)
        return Outcome(question, tuple(proposals), "" if asked else text)


def _graded(set_up: SetUp, request: Request) -> Graded:
    now = requests.clock(set_up)
    events = [
        {**event(each.name, each.start, each.duration_minutes, each.location), "event_id": str(number)}
        for number, each in enumerate(set_up.events)
    ]
    trial = Trial(events=events, now=now)
    for earlier in request.after:
        trial.outcome_of(earlier, calls=len(SCHEMAS))
    outcome = trial.outcome_of(request.request, calls=len(request.expect.calls))
    return Graded(set_up.language, request, outcome, grade(request, outcome, now.tzinfo))


@pytest.mark.parametrize("name", MEASURED)
def test_requests_are_understood_or_asked_about(name: str) -> None:
    results = [_graded(*each) for each in requests.read(FOLDER / f"{name}.jsonl")]
    misses = "\n".join(
        f"{each.grade}: {each.request.request} → {each.outcome}"
        for each in results
        if each.grade in (Grade.MISSED, Grade.HARMFUL)
    )
    percent, harmful = MEASURED[name]
    for score in scores(results).values():
        assert score.grades.get(Grade.HARMFUL, 0) <= harmful, misses
        assert score.percent >= percent, misses
