"""A conversation with the offline planner, by the sequence rules of the graph, over a calendar in a list."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from assent.assistant.planner.model import OfflinePlanner

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 16, 10, 0, tzinfo=BERLIN)
"""A Monday."""

APPROVED = {"create_event", "update_event", "delete_event", "book_room"}


def _text(**more: Any) -> dict[str, Any]:
    return {"type": "string", **more}


def schema(name: str, description: str, required: list[str], /, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    schema("request_clarification", "Ask the user.", ["question"], question=_text(), context=_text()),
    schema("list_calendars", "List the calendars there are.", []),
    schema(
        "list_events",
        "List events.",
        ["start_time"],
        start_time=_text(),
        calendar_id=_text(),
        duration_days={"type": "integer"},
    ),
    schema(
        "create_event",
        "Add an event.",
        ["start", "name"],
        start=_text(),
        name=_text(),
        calendar_id=_text(),
        duration_minutes={"type": "integer"},
        location=_text(),
        description=_text(),
    ),
    schema(
        "update_event",
        "Change an event.",
        ["calendar_id", "event_id"],
        calendar_id=_text(),
        event_id=_text(),
        start=_text(),
        name=_text(),
        duration_minutes={"type": "integer"},
        location=_text(),
        description=_text(),
    ),
    schema("search_places", "Find places.", ["query"], query=_text(), near=_text()),
    schema(
        "get_directions",
        "The way between two places.",
        ["origin", "destination"],
        origin=_text(),
        destination=_text(),
        mode=_text(enum=["walking", "bicycling", "driving", "transit"]),
    ),
    schema(
        "book_room",
        "Book a meeting room.",
        ["start"],
        start=_text(),
        name=_text(),
        duration_minutes={"type": "integer"},
        people={"type": "integer"},
    ),
]


def event(name: str, start: datetime, minutes: int = 30, location: str | None = None) -> dict[str, Any]:
    end = start + timedelta(minutes=minutes)
    return {
        "event_id": f"id-{name.lower().replace(' ', '-')}",
        "name": name,
        "start": start.isoformat(),
        "end": end.isoformat(),
        "location": location,
        "description": None,
    }


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=BERLIN)


@dataclass
class Talk:
    """What people say goes in, what the planner wants comes out; approved calls are carried out on `events`."""

    events: list[dict[str, Any]] = field(default_factory=list)
    now: datetime = NOW
    tools: list[dict[str, Any]] = field(default_factory=lambda: TOOLS)
    roles: Mapping[str, str] = field(default_factory=dict)
    messages: list[BaseMessage] = field(default_factory=list)
    executed: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    fail: Callable[[str], str | None] = lambda name: None

    def say(self, text: str) -> AIMessage:
        self.messages.append(HumanMessage(text))
        return self.think()

    def think(self) -> AIMessage:
        """Until a person is needed: calls that need nobody are carried out at once."""
        while True:
            model = OfflinePlanner(now=lambda: self.now, tool_roles=self.roles)
            message = model.bind_tools(self.tools).invoke(self.messages)
            self.messages.append(message)
            names = {call["name"] for call in message.tool_calls}
            if not names or names & (APPROVED | {"request_clarification"}):
                return message
            self._run(message.tool_calls)

    def answer(self, text: str) -> AIMessage:
        """Answers the questions of the last message; its other calls are deferred and made again."""
        calls = self._last().tool_calls
        for call in calls:
            asked = call["name"] == "request_clarification"
            self._result(call, text if asked else "Deferred until the clarification is answered.")
        left = [call for call in calls if call["name"] != "request_clarification"]
        if left:
            again = [{**call, "id": f"again_{uuid4().hex}"} for call in left]
            self.messages.append(AIMessage(content="", tool_calls=again))
            return self._last()
        return self.think()

    def approve(self, *rejected: str | None) -> AIMessage:
        """Decides the calls of the last message: None approves, a text rejects. Without any, all are approved."""
        calls = self._last().tool_calls
        verdicts = list(rejected) or [None] * len(calls)
        if None not in verdicts or all(verdict is None for verdict in verdicts):
            for call, verdict in zip(calls, verdicts, strict=True):
                self._run([call]) if verdict is None else self._result(call, f"Rejected by the user: {verdict}")
            return self.think()
        for call, verdict in zip(calls, verdicts, strict=True):
            self._result(call, "Approved; see below." if verdict is None else f"Rejected by the user: {verdict}")
        pairs = zip(calls, verdicts, strict=True)
        again = [{**call, "id": f"again_{uuid4().hex}"} for call, verdict in pairs if verdict is None]
        self.messages.append(AIMessage(content="", tool_calls=again))
        self._run(self._last().tool_calls)
        return self.think()

    def _last(self) -> AIMessage:
        last = self.messages[-1]
        assert isinstance(last, AIMessage)
        return last

    def _run(self, calls: Any) -> None:
        for call in calls:
            problem = self.fail(call["name"])
            if problem:
                self.messages.append(ToolMessage(problem, tool_call_id=call["id"], status="error"))
            else:
                self.executed.append((call["name"], call["args"]))
                self._result(call, json.dumps(getattr(self, f"_{call['name']}")(call["args"])))

    def _result(self, call: Any, text: str) -> None:
        self.messages.append(ToolMessage(text, tool_call_id=call["id"]))

    def _list_calendars(self, args: dict[str, Any]) -> Any:
        names = {"primary": "Calendar", "work-1": "Work"}
        return {"calendars": [{"name": name, "calendar_id": key} for key, name in names.items()]}

    def _list_events(self, args: dict[str, Any]) -> Any:
        start = datetime.fromisoformat(args["start_time"])
        end = start + timedelta(days=args["duration_days"])
        events_between = [one for one in self.events if start <= datetime.fromisoformat(one["start"]) < end]
        return {"events": sorted(events_between, key=lambda one: str(one["start"]))}

    def _create_event(self, args: dict[str, Any]) -> Any:
        start = datetime.fromisoformat(args["start"])
        made = event(args["name"], start, args.get("duration_minutes", 30), args.get("location"))
        self.events.append(made)
        return {"event_details": made, "id": made["event_id"], "event_id": made["event_id"]}

    def _delete_event(self, args: dict[str, Any]) -> Any:
        (found,) = [one for one in self.events if one["event_id"] == args["event_id"]]
        self.events.remove(found)
        return {"event_details": found, "event_id": found["event_id"]}

    def _update_event(self, args: dict[str, Any]) -> Any:
        (found,) = [one for one in self.events if one["event_id"] == args["event_id"]]
        found["name"] = args.get("name", found["name"])
        start, end = datetime.fromisoformat(found["start"]), datetime.fromisoformat(found["end"])
        length = timedelta(minutes=args["duration_minutes"]) if "duration_minutes" in args else end - start
        start = datetime.fromisoformat(args["start"]) if "start" in args else start
        found |= {"start": start.isoformat(), "end": (start + length).isoformat()}
        found["location"] = args.get("location", found["location"])
        return {"event_details": found, "id": found["event_id"], "event_id": found["event_id"]}

    def _search_places(self, args: dict[str, Any]) -> Any:
        return {"places": [{"name": "Lantern Cafe", "address": "7 Market Square", "distance_meters": 120}]}

    def _get_directions(self, args: dict[str, Any]) -> Any:
        return {
            "origin": args["origin"],
            "destination": args["destination"],
            "mode": args.get("mode", "walking"),
            "distance_meters": 900,
            "duration_minutes": 12,
            "steps": ["Go north."],
        }

    def _book_room(self, args: dict[str, Any]) -> Any:
        made = event(args.get("name", "Meeting"), datetime.fromisoformat(args["start"]), 60, "Alder")
        return {"event_details": made, "id": "1", "event_id": "1"}


def names(message: AIMessage) -> list[str]:
    return [call["name"] for call in message.tool_calls]


def question(message: AIMessage) -> str:
    (call,) = [call for call in message.tool_calls if call["name"] == "request_clarification"]
    return str(call["args"]["question"])
