"""The conversation as the planner needs it: the request in hand, and what was asked and answered since.

Each message of the planner is stamped with the time at which it was made and the goal of each call. "Tomorrow" then
keeps its meaning when a person answers a day later, and a call is known again when the graph defers it and makes a new
message for it. Messages of a person may carry `additional_kwargs["at"]`, an ISO date-time: it counts before the stamps.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from assent.assistant.planner import results

STAMP = "offline_planner"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call and what came of it. `goals` are the numbers of the goals that it serves; None if it is not ours."""

    name: str
    args: dict[str, Any]
    goals: tuple[int, ...] | None
    message: ToolMessage | None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One message of the model with its calls. `made` is when; `heard` is when the answers were read."""

    made: datetime
    heard: datetime
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    text: str
    said: datetime
    rounds: tuple[Round, ...]
    earlier: tuple[BaseMessage, ...] = field(default=())


def stamp(now: datetime, goals: dict[str, list[int]], asks: list[int]) -> dict[str, Any]:
    return {STAMP: {"now": now.isoformat(), "goals": goals, "asks": asks}}


def turn(messages: Sequence[BaseMessage], now: datetime) -> Turn | None:
    """The request in hand; None if nobody said anything."""
    start = _start(messages)
    if start is None:
        return None
    since = messages[start + 1 :]
    tools = {message.tool_call_id: message for message in since if isinstance(message, ToolMessage)}
    models = [index for index, message in enumerate(since) if isinstance(message, AIMessage)]
    times = _times(since, models, now)
    rounds = tuple(
        Round(
            made=times[position],
            heard=times[position + 1],
            exchanges=_exchanges(since, index, [since[later] for later in models[position + 1 :]], tools),
        )
        for position, index in enumerate(models)
    )
    said = _at(messages[start], now) or times[0]
    return Turn(results.content(messages[start]), said, rounds, tuple(messages[:start]))


def _start(messages: Sequence[BaseMessage]) -> int | None:
    """The last thing a person said; or, if that only answers a question of the planner's, what was said before it."""
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], HumanMessage):
            before = messages[index - 1] if index else None
            if before is None or not _stamp(before).get("asks"):
                return index
    return None


def _times(since: Sequence[BaseMessage], models: list[int], now: datetime) -> list[datetime]:
    """When each message was made, and now. One without a stamp was made no later than the next that has one."""
    times = [now]
    for index in reversed(models):
        made = _parsed(_stamp(since[index]).get("now"), now)
        times.insert(0, made or times[0])
    return times


def _exchanges(
    since: Sequence[BaseMessage], index: int, later: Sequence[BaseMessage], tools: dict[str, ToolMessage]
) -> tuple[Exchange, ...]:
    message = since[index]
    assert isinstance(message, AIMessage)
    stamped = _stamp(message)
    owners = stamped.get("goals") or {}
    exchanges = []
    for call in message.tool_calls:
        goals = tuple(owners[call["id"]]) if call["id"] in owners else None
        again = _again(call, later)
        result = tools.get(str(again or call["id"]))
        if goals is not None or not _ours(call, since[:index]):
            exchanges.append(Exchange(call["name"], call["args"], goals, result))
    if stamped.get("asks") and len(since) > index + 1 and isinstance(since[index + 1], HumanMessage):
        said = results.content(since[index + 1])
        exchanges += [Exchange("", {}, (goal,), None, answer=said) for goal in stamped["asks"]]
    return tuple(exchanges)


def _again(call: Any, later: Sequence[BaseMessage]) -> str | None:
    """The id under which the graph makes the same call once more: what came first was a placeholder."""
    same = [
        other["id"]
        for message in later
        if isinstance(message, AIMessage) and not _stamp(message)
        for other in message.tool_calls
        if _key(other) == _key(call)
    ]
    return same[-1] if same else None


def _ours(call: Any, before: Sequence[BaseMessage]) -> bool:
    """Whether a call without a stamp repeats one of the planner's."""
    return any(
        _key(other) == _key(call)
        for message in before
        if isinstance(message, AIMessage) and _stamp(message)
        for other in message.tool_calls
    )


def _key(call: Any) -> str:
    return json.dumps([call["name"], call["args"]], sort_keys=True, default=str)


def _stamp(message: BaseMessage) -> dict[str, Any]:
    stamp = message.response_metadata.get(STAMP)
    return stamp if isinstance(stamp, dict) else {}


def _at(message: BaseMessage, now: datetime) -> datetime | None:
    return _parsed(message.additional_kwargs.get("at"), now)


def _parsed(value: Any, now: datetime) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment.astimezone(now.tzinfo) if moment and moment.tzinfo else None


def heard(exchange: Exchange, round_: Round) -> datetime:
    """When the answer of this exchange was given, as far as that is known."""
    told = _at(exchange.message, round_.heard) if exchange.message else None
    return told or round_.heard
