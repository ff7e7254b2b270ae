"""The five flows of the assistant: the real graph, the offline planner, the real calendar, a person who answers."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic import TypeAdapter, ValidationError

from assent import LocalInbox
from assent.assistant import state
from assent.assistant.calendar.server import create_server
from assent.assistant.nodes import Nodes
from assent.assistant.planner.model import OfflinePlanner
from assent.review.model.questions import Verb, Verdict
from tests.assistant.desk import CONFIG, Desk, client_of, every_call_is_answered_once

APPROVE = Verdict("0", Verb.APPROVE)


class Calendar:
    def __init__(self, file: Path) -> None:
        self.file = file
        self.server = create_server(file)

    @property
    def events(self) -> list[tuple[str, str]]:
        """Names and hours, by start."""
        with sqlite3.connect(self.file) as connection:
            rows = connection.execute("SELECT name, start FROM events ORDER BY starts_at").fetchall()
        connection.close()
        return [(name, datetime.fromisoformat(start).strftime("%H:%M")) for name, start in rows]

    def add(self, name: str, start: datetime) -> None:
        with sqlite3.connect(self.file) as connection:
            at = int(start.timestamp())
            connection.execute(
                "INSERT INTO events VALUES (?, 'primary', ?, ?, ?, ?, NULL, NULL, '[]')",
                (name, name, start.isoformat(), at, at + 1800),
            )
        connection.close()


@pytest.fixture
def calendar(folder: Path) -> Calendar:
    return Calendar(folder / "calendar.db")


@pytest.fixture
async def talk(calendar: Calendar, inbox: LocalInbox, folder: Path) -> Any:
    planner = OfflinePlanner()
    nodes = Nodes(planner, planner, client_of(calendar.server), inbox=inbox)
    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        yield Desk(folder / "gate.db", nodes, saver)
        await nodes.client.close()


def tool_calls(asked: Any) -> list[tuple[str, str]]:
    assert asked["kind"] == "confirmation", asked
    return [(tool_call["tool_name"], tool_call["arguments"].get("name") or "") for tool_call in asked["tool_calls"]]


def hour(asked: Any) -> str:
    return datetime.fromisoformat(asked["tool_calls"][0]["arguments"]["start"]).strftime("%H:%M")


@pytest.mark.promise("ASST-01", "ASST-23", "ASST-32", "ASST-40")
async def test_vague_request_is_scheduled_after_a_question(talk: Desk, calendar: Calendar) -> None:
    asked = await talk.say("schedule something")
    assert asked["kind"] == "clarification"
    asked = await talk.respond(*["a meeting tomorrow at 3pm"] * len(asked["clarifications"]))
    assert tool_calls(asked)[0][0] == "create_event"
    assert calendar.events == []
    assert await talk.approve() is None
    assert [at for _, at in calendar.events] == ["15:00"]
    assert every_call_is_answered_once(talk.messages)
    assert talk.messages[-1].text


@pytest.mark.promise("ASST-33")
async def test_a_clear_request_only_needs_approval(talk: Desk, calendar: Calendar) -> None:
    asked = await talk.say("create a meeting called Standup tomorrow at 9am")
    assert tool_calls(asked) == [("create_event", "Standup")]
    assert await talk.approve() is None
    assert calendar.events == [("Standup", "09:00")]


async def test_conversation_continues_after_a_result(talk: Desk, calendar: Calendar) -> None:
    await talk.say("create a meeting called Standup tomorrow at 9am")
    await talk.approve()
    asked = await talk.say("move it to 11am")
    assert [name for name, _ in tool_calls(asked)] == ["update_event"]
    assert await talk.approve() is None
    assert calendar.events == [("Standup", "11:00")]
    assert every_call_is_answered_once(talk.messages)


async def test_reading_tool_needs_no_approval(talk: Desk, calendar: Calendar) -> None:
    assert await talk.say("what is in my calendar tomorrow?") is None
    assert await talk.say("find a cafe") is None
    assert talk.messages[-1].text


@pytest.mark.promise("ASST-27", "ASST-34")
async def test_feedback_leads_to_a_new_proposal(talk: Desk, calendar: Calendar) -> None:
    first = await talk.say("create an event called Dentist tomorrow at 9am")
    second = await talk.answer(Verdict("0", Verb.REJECT, message="Wrong time, should be 10am"))
    assert (hour(first), hour(second)) == ("09:00", "10:00")
    assert first["tool_calls"][0]["call_id"] != second["tool_calls"][0]["call_id"]
    assert calendar.events == []
    assert await talk.approve() is None
    assert calendar.events == [("Dentist", "10:00")]


@pytest.mark.promise("ASST-35")
async def test_only_the_approved_of_two_events_is_made(talk: Desk, calendar: Calendar) -> None:
    asked = await talk.say("create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm")
    if asked["kind"] == "clarification":
        asked = await talk.respond(*["tomorrow"] * len(asked["clarifications"]))
    assert tool_calls(asked) == [("create_event", "Team Meeting"), ("create_event", "Lunch with Bob")]
    asked = await talk.answer(APPROVE, Verdict("1", Verb.REJECT, message="I have no time for lunch"))
    assert asked is None
    assert calendar.events == [("Team Meeting", "10:00")]
    assert every_call_is_answered_once(talk.messages)


@pytest.mark.promise("ASST-24", "ASST-25")
async def test_question_defers_other_calls_until_it_is_answered(talk: Desk, calendar: Calendar) -> None:
    now = datetime.now().astimezone()
    calendar.add("Review", (now + timedelta(days=1)).replace(hour=15, minute=0, second=0, microsecond=0))
    asked = await talk.say("schedule something for me, and move the meeting at 3pm to 4pm")
    assert asked["kind"] == "clarification"
    asked = await talk.respond(*["lunch with Bob in three days at noon"] * len(asked["clarifications"]))
    assert [name for name, _ in tool_calls(asked)] == ["update_event"]
    asked = await talk.approve()
    assert [name for name, _ in tool_calls(asked)] == ["create_event"]
    assert await talk.approve() is None
    assert [at for _, at in calendar.events] == ["16:00", "12:00"]
    assert every_call_is_answered_once(talk.messages)


def conforms(value: Any, kind: Any) -> bool:
    """Whether a value is of a typed dictionary, field by field, and has no other fields."""
    TypeAdapter(kind).validate_python(value, strict=True)
    return bool(value.keys() <= kind.__required_keys__ | kind.__optional_keys__)


@pytest.mark.promise("ASST-21")
async def test_state_and_pauses_are_of_the_promised_types(talk: Desk) -> None:
    asked = await talk.say("schedule something")
    assert conforms(asked, state.PendingClarification)
    assert all(conforms(clarification, state.ClarificationInfo) for clarification in asked["clarifications"])
    await talk.say("create 2 events: Team Meeting tomorrow at 10am and Lunch with Bob tomorrow at 12pm")
    asked = talk.asked
    assert conforms(asked, state.PendingApproval)
    assert all(conforms(tool_call, state.ToolCallInfo) for tool_call in asked["tool_calls"])
    await talk.answer(APPROVE, Verdict("1", Verb.REJECT, message="I have no time for lunch"))

    assert set(talk.graph.builder.channels) >= state.RequestState.__annotations__.keys()
    past = [past_state.values async for past_state in talk.graph.aget_state_history(CONFIG)]
    approved = [approval for values in past for approval in values.get("approvals", ())]
    rejected = [call for values in past for call in values.get("rejected", ())]
    assert approved
    assert rejected
    assert all(conforms(call, state.ApprovalOutcome) for call in approved)
    assert all(conforms(call, state.RejectedToolFeedback) for call in rejected)
    with pytest.raises(ValidationError):
        conforms({**rejected[0], "feedback": 5}, state.RejectedToolFeedback)
