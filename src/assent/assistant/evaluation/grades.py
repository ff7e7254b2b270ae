"""Compares the outcome of a request with the expected one. A proposal that a person did not ask for is harmful, even
though nothing runs without approval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Any

from assent.assistant.evaluation.requests import ExpectedCall, Request


class Grade(StrEnum):
    RIGHT = "right"
    ASKED = "asked"
    """Asked or declined where the file accepts that as well."""
    MISSED = "missed"
    HARMFUL = "harmful"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A call that needs approval. For a call on an event: its name and start, and the arguments that change it."""

    tool: str
    arguments: dict[str, Any]
    event: str | None = None
    on: datetime | None = None

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.arguments.items())
        return f"{self.tool}({', '.join(filter(None, (self.event, shown)))})"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a request: questions, proposals, or an answer."""

    question: str | None = None
    proposals: tuple[Proposal, ...] = ()
    answer: str = ""

    def __str__(self) -> str:
        parts = [str(proposal) for proposal in self.proposals]
        return "; ".join([*parts, *([f"asks: {self.question}"] if self.question else [])]) or f"answers: {self.answer}"


_USUAL_MINUTES = (30, 60)
"""Lengths that a new event may have where none was said."""
_DETAILS = ("name", "location", "description", "attendees", "equipment", "people")
"""Arguments in which a mistake is no wrong time and no wrong event."""


def grade(request: Request, outcome: Outcome, zone: tzinfo | None) -> Grade:
    calls = request.expect.calls
    verdicts = [_best(proposal, calls, zone) for proposal in outcome.proposals]
    if Grade.HARMFUL in verdicts or len(verdicts) > len(calls):
        return Grade.HARMFUL
    if Grade.MISSED in verdicts:
        return Grade.MISSED
    if outcome.question is not None:
        return _of_text("asks", request, right=request.expect.asks)
    if outcome.proposals:
        return Grade.RIGHT if len(verdicts) == len(calls) else Grade.MISSED
    words = request.expect.answers
    text = outcome.answer.casefold()
    return _of_text("answers", request, right=words is not None and all(word.casefold() in text for word in words))


def _of_text(kind: str, request: Request, *, right: bool) -> Grade:
    if right:
        return Grade.RIGHT
    return Grade.ASKED if request.otherwise == kind else Grade.MISSED


def _best(proposal: Proposal, calls: Sequence[ExpectedCall], zone: tzinfo | None) -> Grade:
    grades = [_compared(proposal, call, zone) for call in calls]
    return next((best for best in (Grade.RIGHT, Grade.MISSED) if best in grades), Grade.HARMFUL)


def _compared(proposal: Proposal, call: ExpectedCall, zone: tzinfo | None) -> Grade:
    same_event = call.event is None or _same_text(call.event, proposal.event or "")
    if proposal.tool != call.call or not same_event or (call.on and proposal.on != _zoned(call.on, zone)):
        return Grade.HARMFUL
    wrong = {
        name
        for name in {*proposal.arguments, *call.arguments} - {"calendar_id", "event_id", "description"}
        if not _fits(name, call.arguments.get(name), proposal.arguments.get(name), proposal.tool, zone)
    }
    if not wrong:
        return Grade.RIGHT
    return Grade.MISSED if wrong <= set(_DETAILS) else Grade.HARMFUL


def _fits(name: str, expected: Any, given: Any, tool: str, zone: tzinfo | None) -> bool:
    if expected is None and tool != "update_event":
        unasked = (name == "duration_minutes" and given in _USUAL_MINUTES) or (name, tool) == ("name", "book_room")
        return unasked or name == "attendees" or given in (None, "none", [])
    if name == "start":
        return _moment(expected, zone) == _moment(given, zone)
    if name in ("attendees", "equipment") and isinstance(expected, list):
        return _folded(expected) == _folded(given if isinstance(given, list) else [given])
    return _same_text(expected, given) if isinstance(expected, str) and isinstance(given, str) else expected == given


def _same_text(expected: str, given: str) -> bool:
    return given.strip().casefold() in [choice.strip().casefold() for choice in expected.split("|")]


def _folded(values: Sequence[Any]) -> set[str]:
    return {str(value).casefold() for value in values}


def _moment(value: Any, zone: tzinfo | None) -> datetime | None:
    try:
        return _zoned(datetime.fromisoformat(str(value)), zone)
    except ValueError:
        return None


def _zoned(moment: datetime, zone: tzinfo | None) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
