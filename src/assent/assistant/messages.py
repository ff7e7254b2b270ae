"""The conversation's rules, as pure functions: every tool call gets exactly one answer, in the order of the calls.

A deferred call gets a placeholder under its first id, and is repeated in a message of ours under a new id: providers
refuse a history in which a call has no answer, or two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.messages.tool import tool_call

INVALID = "assent_invalid"
"""Key in a message's `additional_kwargs`: the calls with invalid arguments, and the errors."""

_DEFERRED = "Deferred: this call is made in the next message."
_CHANGED = "Deferred: a person has changed this call. It is made, as changed, in the next message."


def last_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """The calls of the last message, which have no answer yet."""
    message = messages[-1] if messages else None
    return message.tool_calls if isinstance(message, AIMessage) else []


def latest(messages: Sequence[AnyMessage], most: int) -> Sequence[AnyMessage]:
    """At most so many of the last messages, from a request on: no answer is without its call. The present request is
    always complete."""
    requests = [place for place, message in enumerate(messages) if isinstance(message, HumanMessage)]
    if len(messages) <= most or not requests:
        return messages
    start = next((place for place in requests if place >= len(messages) - most), requests[-1])
    return messages[start:]


def new_id() -> str:
    return f"call_{uuid4().hex}"


def call_id(call: ToolCall) -> str:
    return str(call["id"])


def normalised(message: AIMessage, before: Iterable[AnyMessage]) -> AIMessage:
    """The message with a unique id for each call, and with the invalid calls among the others."""
    taken = {call["id"] for earlier in before if isinstance(earlier, AIMessage) for call in earlier.tool_calls}
    calls: list[ToolCall] = []
    invalid: dict[str, str] = {}
    for call in message.tool_calls:
        calls.append({**call, "id": _unused(call["id"], taken)})
    for broken in message.invalid_tool_calls:
        calls.append(tool_call(name=broken["name"] or "unknown", args={}, id=_unused(broken["id"], taken)))
        invalid[call_id(calls[-1])] = broken["error"] or "the arguments are not valid JSON"
    if calls == message.tool_calls and not invalid:
        return message
    kwargs = _without_calls(message.additional_kwargs) | ({INVALID: invalid} if invalid else {})
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": [], "additional_kwargs": kwargs})


def marked(message: AIMessage, invalid: Mapping[str, str]) -> AIMessage:
    """The message with more invalid calls, by id. They get an error instead of a result."""
    if not invalid:
        return message
    known = message.additional_kwargs.get(INVALID) or {}
    kwargs = {**message.additional_kwargs, INVALID: {**invalid, **known}}
    return message.model_copy(update={"additional_kwargs": kwargs})


def again(calls: Sequence[ToolCall]) -> AIMessage:
    """A message of ours with these calls, under their present ids."""
    return AIMessage(content="", tool_calls=list(calls))


def renamed(call: ToolCall, args: dict[str, Any] | None = None) -> ToolCall:
    """The same call under a new id, with the arguments that a person has changed."""
    return {**call, "id": new_id(), "args": call["args"] if args is None else args}


def deferred(call: ToolCall, *, changed: bool = False) -> ToolMessage:
    """The placeholder for a call that follows in the next message."""
    return answer(call, _CHANGED if changed else _DEFERRED, "deferred")


def answer(call: ToolCall, text: str, kind: str | None = None, *, failed: bool = False) -> ToolMessage:
    """The answer to a call that was not made. `kind` classifies it: rejected, deferred."""
    return ToolMessage(
        content=text,
        tool_call_id=call_id(call),
        name=call["name"],
        status="error" if failed else "success",
        additional_kwargs={"assent": {"kind": kind}} if kind else {},
    )


def rejected(call: ToolCall, feedback: str) -> ToolMessage:
    message = answer(call, f"The user rejected this call with feedback: {feedback}", failed=True)
    return message.model_copy(update={"additional_kwargs": {"assent": {"kind": "rejected", "text": feedback}}})


def repaired(messages: Sequence[AnyMessage]) -> list[AnyMessage] | None:
    """The conversation with an answer for each call that an earlier request left open; None if none is open."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    whole: list[AnyMessage] = []
    open_: list[ToolCall] = []
    for message in messages:
        if not isinstance(message, ToolMessage):
            whole += [_interrupted(call) for call in open_]
            open_ = []
        whole.append(message)
        if isinstance(message, AIMessage):
            open_ = [call for call in message.tool_calls if call_id(call) not in answered]
    whole += [_interrupted(call) for call in open_]
    return whole if len(whole) > len(messages) else None


def _unused(id: str | None, taken: set[str | None]) -> str:
    chosen = id if id and id not in taken else new_id()
    taken.add(chosen)
    return chosen


def _without_calls(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Removes the provider's own copy of the calls, whose ids may have changed."""
    return {name: value for name, value in kwargs.items() if name not in ("tool_calls", "function_call")}


def _interrupted(call: ToolCall) -> ToolMessage:
    text = "This call was interrupted before it had a result. It may or may not have taken effect."
    return answer(call, text, failed=True)
