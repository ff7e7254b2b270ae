"""From a conversation to what is due next. Nothing is kept between two calls: each time, the goals are read again from
the request and led through all that was asked, answered and done since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from assent.assistant.planner import answers, calendars, outcomes, results
from assent.assistant.planner.goals import Ask, Change, Event, Track, Use, opened, with_calendar
from assent.assistant.planner.intents.requests import understand
from assent.assistant.planner.replies import say
from assent.assistant.planner.results import Kind
from assent.assistant.planner.steps import event_of, step
from assent.assistant.planner.tools import Role, Tool
from assent.assistant.planner.transcript import Exchange, Round, Turn, heard, turn

Tools = Mapping[Role, Tool]


@dataclass(slots=True)
class Planned:
    """Calls with the numbers of the goals they serve, or a text. `asks` are the goals that the text asks about."""

    calls: list[tuple[str, dict[str, Any], list[int]]] = field(default_factory=list)
    text: str = ""
    asks: list[int] = field(default_factory=list)


def plan(messages: Sequence[BaseMessage], tools: Tools, now: datetime) -> Planned:
    request = turn(messages, now)
    if request is None:
        return Planned(text=say("help"))
    return _due(_replay(request, tools, now), request, tools, now)


def _replay(request: Turn, tools: Tools, now: datetime) -> list[Track]:
    last = _last_event(request.earlier, tools, now)
    tracks = [opened(_with_event(goal, last)) for goal in understand(request.text, request.said)]
    for round_ in request.rounds:
        done = _carried_out(round_, tools)
        for exchange in round_.exchanges:
            _absorb(tracks, exchange, round_, tools, done)
    return tracks


def _absorb(tracks: list[Track], exchange: Exchange, round_: Round, tools: Tools, done: int) -> None:
    role = _role(exchange, tools)
    if role is None or (exchange.message is None and exchange.answer is None):
        return
    at = heard(exchange, round_)
    for number in _owners(tracks, exchange, role, round_.made):
        track = tracks[number]
        if role is Role.CLARIFY:
            said = exchange.answer if exchange.message is None else results.answer(exchange.message)
            tracks[number], *more = map(with_calendar, outcomes.heard(track, said or "", at))
            tracks += more
        elif exchange.message is not None:
            result = results.read(exchange.message)
            others = done > (result.kind is Kind.DONE)
            fields = tools[role].fields(exchange.args)
            tracks[number] = with_calendar(outcomes.learned(track, role, fields, result, at, others))


def _owners(tracks: list[Track], exchange: Exchange, role: Role, made: datetime) -> list[int]:
    """The goals that the call serves. Without a stamp, the first goal that had this to do."""
    if exchange.goals is not None:
        return [number for number in exchange.goals if number < len(tracks)]
    for number, track in enumerate(tracks):
        if track.sentence is None and _does(step(track, made)) is role:
            return [number]
    return []


def _does(due: Ask | Use) -> Role:
    return due.role if isinstance(due, Use) else Role.CLARIFY


def _role(exchange: Exchange, tools: Tools) -> Role | None:
    if exchange.answer is not None:
        return Role.CLARIFY
    return next((role for role, tool in tools.items() if tool.name == exchange.name), None)


def _carried_out(round_: Round, tools: Tools) -> int:
    """How many calls of this message did something, questions apart."""
    return sum(
        exchange.message is not None
        and _role(exchange, tools) is not Role.CLARIFY
        and results.read(exchange.message).kind is Kind.DONE
        for exchange in round_.exchanges
    )


def _due(tracks: list[Track], request: Turn, tools: Tools, now: datetime) -> Planned:
    steps: dict[int, Ask | Use] = {}
    for number, track in enumerate(tracks):
        if track.sentence is not None:
            continue
        due = step(track, now)
        missing = _missing(track, due, tools)
        if missing:
            tracks[number] = track.closed(say("no tool", ability=say(missing)))
        else:
            steps[number] = due
    if any(isinstance(due, Use) and due.prepares for due in steps.values()):
        steps = {number: due for number, due in steps.items() if _only_reads(due)}
    if not steps:
        return Planned(text=_report(tracks))
    if Role.CLARIFY not in tools and any(isinstance(due, Ask) for due in steps.values()):
        return _asked_in_words(steps, tracks, request, tools)
    planned = _called(steps, request, tools)
    writes = [_proposal(tracks[number], due, now) for number, due in steps.items() if isinstance(due, Use)]
    planned.text = " ".join(filter(None, writes))
    return planned


def _proposal(track: Track, due: Use, now: datetime) -> str:
    known = event_of(track, track.goal, now) if isinstance(track.goal, Change) else None
    return answers.proposal(track.goal, known, due.role, due.fields, now)


def _missing(track: Track, due: Ask | Use, tools: Tools) -> Role | None:
    """The role that no tool has: of this step, or of the deletion that it would lead to."""
    deletes = isinstance(track.goal, Change) and track.goal.delete
    needed = [Role.DELETE] * deletes + ([due.role] if isinstance(due, Use) else [])
    return next((role for role in needed if role not in tools), None)


def _only_reads(due: Ask | Use) -> bool:
    return isinstance(due, Use) and (due.prepares or due.role in (Role.EVENTS, Role.CALENDARS))


def _called(
    steps: Mapping[int, Ask] | Mapping[int, Use] | Mapping[int, Ask | Use], request: Turn, tools: Tools
) -> Planned:
    """One call for each step; goals that look up the same share it."""
    planned = Planned()
    for number, due in steps.items():
        if isinstance(due, Ask):
            fields = {"question": due.question, "context": say("context", said=request.text[:300])}
            role = Role.CLARIFY
        else:
            fields, role = dict(due.fields), due.role
        name, args = tools[role].name, _arguments(tools[role], role, fields)
        same = next((call for call in planned.calls if call[:2] == (name, args) and _only_reads(due)), None)
        if same:
            same[2].append(number)
        else:
            planned.calls.append((name, args, [number]))
    return planned


def _arguments(tool: Tool, role: Role, fields: dict[str, Any]) -> dict[str, Any]:
    if role is Role.PLACES and fields.get("near") and not tool.has("near"):
        fields["query"] = f"{fields['query']} near {fields['near']}"
    if fields.get("equipment") and not tool.has("equipment"):
        fields["description"] = "; ".join(
            filter(None, (fields.get("description"), f"Equipment: {fields['equipment']}"))
        )
    return tool.arguments(fields)


def _asked_in_words(steps: Mapping[int, Ask | Use], tracks: list[Track], request: Turn, tools: Tools) -> Planned:
    """Without a tool to ask with: first what can be done, then the questions as the answer."""
    uses = {number: due for number, due in steps.items() if isinstance(due, Use)}
    if uses:
        return _called(uses, request, tools)
    said = [track.sentence for track in tracks if track.sentence]
    questions = [due.question for due in steps.values() if isinstance(due, Ask)]
    return Planned(text=" ".join([*said, *questions]), asks=list(steps))


def _report(tracks: Sequence[Track]) -> str:
    return " ".join(dict.fromkeys(track.sentence for track in tracks if track.sentence)) or say("no more")


def _with_event(goal: Any, last: tuple[Event, str] | None) -> Any:
    """ "It" is the event that was last made or changed in this thread."""
    if isinstance(goal, Change) and goal.event.it and last:
        return replace(goal, known=last[0], calendar_id=last[1])
    return goal


def _last_event(earlier: Sequence[BaseMessage], tools: Tools, now: datetime) -> tuple[Event, str] | None:
    writes = {tools[role].name for role in (Role.CREATE, Role.UPDATE, Role.DELETE, Role.ROOM) if role in tools}
    calls = {call["id"]: call for message in earlier if isinstance(message, AIMessage) for call in message.tool_calls}
    for message in reversed(earlier):
        call = calls.get(message.tool_call_id) if isinstance(message, ToolMessage) else None
        if call and call["name"] in writes and isinstance(message, ToolMessage):
            event = calendars.event(results.read(message).data, now.tzinfo)
            if event and event.event_id and call["name"] != getattr(tools.get(Role.DELETE), "name", None):
                return event, str(call["args"].get("calendar_id") or "primary")
    return None
