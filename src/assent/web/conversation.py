"""A conversation out of a thread's state: who said what, which tools were called, and what came of each call.

Graphs keep what they like in their state, so nothing is taken for granted: what is not a message is shown as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assent.web.words import Sign

MOST = 200
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
_UNKNOWN = Sign("question", "Something else")
_CALLS = ("tool_use", "tool_call", "function_call")
"""Blocks that say again what `tool_calls` says."""


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
    """The last messages; `earlier` is how many there were before them."""

    messages: list[Said]
    earlier: int = 0


def of(values: Any) -> Conversation:
    found = values.get("messages") if isinstance(values, Mapping) else None
    if not isinstance(found, list):
        return Conversation([])
    said = [_said(one) for one in found[-MOST:]]
    results = {one.answers: one for one in said if one.answers}
    called = {call.id for one in said for call in one.calls if call.id}
    shown = [_answered(one, results) for one in said if one.answers not in called or not one.answers]
    return Conversation(shown, max(len(found) - MOST, 0))


def last_words(values: Any) -> str:
    """One line that says where a conversation stands; empty where there is none."""
    found = values.get("messages") if isinstance(values, Mapping) else None
    for one in reversed(found[-20:] if isinstance(found, list) else []):
        said = _said(one)
        if said.text or said.calls:
            return " ".join(said.text.split())[:300] or ", ".join(call.name for call in said.calls)
    return ""


def _answered(said: Said, results: Mapping[str, Said]) -> Said:
    return replace(said, calls=tuple(replace(call, result=results.get(call.id)) for call in said.calls))


def _said(message: Any) -> Said:
    if not isinstance(message, Mapping):
        return Said(_UNKNOWN, "", message if isinstance(message, str) else _json(message))
    role = str(message.get("type") if message.get("type") in _ROLES else message.get("role", message.get("type", "")))
    name = message.get("name")
    return Said(
        sign=_ROLES.get(role, _UNKNOWN),
        name=name if isinstance(name, str) else "",
        text=_text(message.get("content")) if role in _ROLES else _json(message),
        calls=tuple(_calls(message)) if role in _ROLES else (),
        answers=str(message.get("tool_call_id") or ""),
        failed=message.get("status") == "error",
    )


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return _json(content)
    return "\n".join(part for part in map(_block, content) if part)


def _block(block: Any) -> str:
    """Pictures and files are named, never fetched."""
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
        found = message.get(name)
        yield from (_call(one) for one in (found if isinstance(found, Sequence) else ()) if isinstance(one, Mapping))


def _call(call: Mapping[str, Any]) -> Call:
    """As LangChain writes it, or as OpenAI does."""
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    args = inner.get("args", inner.get("arguments"))
    return Call(str(call.get("id") or ""), str(inner.get("name") or "?"), _parsed(args))


def _parsed(args: Any) -> Any:
    try:
        return json.loads(args) if isinstance(args, str) else args
    except ValueError:
        return args


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
