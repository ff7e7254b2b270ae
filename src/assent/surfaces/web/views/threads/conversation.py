"""The conversation in a thread's state: messages, tool calls and their results.

Graphs can store anything in their state, so every field is checked; a value that is not a message is shown as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assent.surfaces.web.text.words import Sign

MOST = 200
LONGEST = 20_000
_LONGEST_LINE = 2_000
_ROLES = {
    "human": Sign("person", "Person"),
    "user": Sign("person", "Person"),
    "ai": Sign("agent", "Agent"),
    "assistant": Sign("agent", "Agent"),
    "tool": Sign("tool", "Tool result"),
    "function": Sign("tool", "Tool result"),
    "system": Sign("gear", "Instructions"),
    "developer": Sign("gear", "Instructions"),
}
_UNKNOWN = Sign("question", "Other")
_CALLS = ("tool_use", "tool_call", "function_call")
"""Blocks that repeat `tool_calls`."""


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    name: str
    args: Any
    result: Said | None = None


@dataclass(frozen=True, slots=True)
class Said:
    sign: Sign
    name: str
    text: str
    calls: tuple[Call, ...] = ()
    answers: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """The last messages; `earlier` counts the omitted ones before them."""

    messages: list[Said]
    earlier: int = 0


def of(values: Any) -> Conversation:
    messages = _messages(values)
    parsed = [_said(message) for message in messages[-MOST:]]
    results = {message.answers: message for message in parsed if message.answers}
    called = {call.id for message in parsed for call in message.calls if call.id}
    shown = [_answered(message, results) for message in parsed if message.answers not in called or not message.answers]
    return Conversation(shown, max(len(messages) - MOST, 0))


def last_words(values: Any) -> str:
    """The last message on one line; empty if there is none."""
    for message in map(_said, reversed(_messages(values)[-20:])):
        if message.text or message.calls:
            line = " ".join(message.text[:_LONGEST_LINE].split())[:300]
            return line or ", ".join(call.name for call in message.calls)
    return ""


def _messages(values: Any) -> list[Any]:
    messages = values.get("messages") if isinstance(values, Mapping) else None
    return messages if isinstance(messages, list) else []


def _answered(said: Said, results: Mapping[str, Said]) -> Said:
    return replace(said, calls=tuple(replace(call, result=results.get(call.id)) for call in said.calls))


def _said(message: Any) -> Said:
    if not isinstance(message, Mapping):
        return Said(_UNKNOWN, "", _cut(message if isinstance(message, str) else _json(message)))
    role = str(message.get("type") if message.get("type") in _ROLES else message.get("role", message.get("type", "")))
    name = message.get("name")
    return Said(
        sign=_ROLES.get(role, _UNKNOWN),
        name=name if isinstance(name, str) else "",
        text=_cut(_text(message.get("content")) if role in _ROLES else _json(message)),
        calls=tuple(_calls(message)) if role in _ROLES else (),
        answers=str(message.get("tool_call_id") or ""),
        failed=message.get("status") == "error",
    )


def _cut(text: str) -> str:
    """Truncates a message for display; the state and the API have the full text."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return _json(content)
    return "\n".join(part for part in map(_block, content) if part)


def _block(block: Any) -> str:
    """Shows images and files by type; never fetches them."""
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        return _json(block)
    kind = str(block.get("type", ""))
    if kind in _CALLS:
        return ""
    if isinstance(text := block.get("text"), str):
        return text
    return f"[{kind}]" if kind.startswith(("image", "audio", "video", "file", "media")) else _json(block)


def _calls(message: Mapping[str, Any]) -> Iterator[Call]:
    for name in ("tool_calls", "invalid_tool_calls"):
        calls = message.get(name)
        yield from (_call(call) for call in (calls if isinstance(calls, Sequence) else ()) if isinstance(call, Mapping))


def _call(call: Mapping[str, Any]) -> Call:
    """Parses the format of LangChain or of OpenAI."""
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    args = inner.get("args", inner.get("arguments"))
    parsed = _parsed(args)
    text = parsed if isinstance(parsed, str) else _json(parsed)
    return Call(
        str(call.get("id") or ""), str(inner.get("name") or "?"), parsed if len(text) <= LONGEST else _cut(text)
    )


def _parsed(args: Any) -> Any:
    try:
        return json.loads(args) if isinstance(args, str) else args
    except ValueError:
        return args


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
