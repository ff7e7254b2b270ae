"""States as the protocol shows them: messages in their protocol form, with content blocks."""

from __future__ import annotations

import json
from typing import Any

from assent.runs.upstream import INTERRUPT

_TYPES = {"assistant": "ai", "user": "human"} | {
    name: name for name in ("human", "ai", "system", "tool", "function", "remove")
}
_BLOCKS = frozenset(
    {
        "text",
        "reasoning",
        "tool_call",
        "tool_call_chunk",
        "invalid_tool_call",
        "server_tool_call",
        "server_tool_call_chunk",
        "server_tool_call_result",
        "image",
        "audio",
        "video",
        "file",
        "non_standard",
    }
)
_AUDIO = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "pcm16": "audio/wav",
    "pcm": "audio/wav",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
}


def shown(value: Any) -> Any:
    """The state with its messages in the protocol's form and without open questions."""
    if isinstance(value, list):
        return [message(entry) if is_message(entry) else shown(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {name: _field(name, entry) for name, entry in value.items() if name != INTERRUPT}


def _field(name: str, value: Any) -> Any:
    if name == "messages" and isinstance(value, list):
        return [message(entry) if is_message(entry) else entry for entry in value]
    return shown(value)


def is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] in _TYPES


def message(value: dict[str, Any]) -> dict[str, Any]:
    kind = _TYPES[value["type"]]
    extra = value["additional_kwargs"] if isinstance(value.get("additional_kwargs"), dict) else {}
    content = _content(value.get("content", ""), _audio(extra) if kind == "ai" else None)
    made: dict[str, Any] = {"type": kind, "content": content}
    made |= {name: value[name] for name in ("id", "name") if isinstance(value.get(name), str)}
    if kind in ("ai", "human") and isinstance(value.get("example"), bool):
        made["example"] = value["example"]
    if isinstance(value.get("response_metadata"), dict) and value["response_metadata"]:
        made["response_metadata"] = value["response_metadata"]
    if kind == "tool":
        made |= _tool_fields(value)
    return made | _calls(value, extra) if kind == "ai" else made


def _tool_fields(value: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if isinstance(value.get("tool_call_id"), str):
        fields["tool_call_id"] = value["tool_call_id"]
    if value.get("status") in ("success", "error"):
        fields["status"] = value["status"]
    return fields | ({"artifact": value["artifact"]} if "artifact" in value else {})


# Content


def _content(content: Any, audio: dict[str, Any] | None) -> Any:
    if isinstance(content, str):
        spoken = [{"type": "text", "text": content}] if content else []
        return content if audio is None else [*spoken, audio]
    if not isinstance(content, list):
        return content if audio is None else [audio]
    blocks = [block for entry in content if (block := _block(entry)) is not None]
    if audio is not None and not any(block.get("type") == "audio" for block in blocks):
        blocks.append(audio)
    return blocks or content


def _block(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        return {"type": "text", "text": value}
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        return None
    if kind in _BLOCKS:
        return dict(value)
    if kind == "image_url":
        image = value.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        return {"type": "image", "url": url} if isinstance(url, str) else None
    if kind == "input_audio":
        sound = value.get("input_audio")
        return {"type": "audio", **_texts(sound, "data", "mime_type")} if isinstance(sound, dict) else None
    return {"type": "non_standard", "value": dict(value)}


def _audio(extra: dict[str, Any]) -> dict[str, Any] | None:
    """The spoken answer of a model, which OpenAI keeps beside the content."""
    audio = extra.get("audio")
    if not isinstance(audio, dict) or not _texts(audio, "data", "url"):
        return None
    made = {"type": "audio", **_texts(audio, "id", "url", "data", "mime_type")}
    spoken = audio["format"].lower() if isinstance(audio.get("format"), str) else "wav"
    if "mime_type" not in made and spoken in _AUDIO:
        made["mime_type"] = _AUDIO[spoken]
    return made | _texts(audio, "transcript")


def _texts(value: dict[str, Any], *names: str) -> dict[str, str]:
    return {name: value[name] for name in names if isinstance(value.get(name), str)}


# Tool calls


def _calls(value: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    listed = value.get("tool_calls") or extra.get("tool_calls")
    made = [_call(call) for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    invalid = value.get("invalid_tool_calls")
    calls = {
        "tool_calls": [call for call in made if call["type"] == "tool_call"],
        "invalid_tool_calls": [_invalid(call) for call in invalid if isinstance(call, dict)]
        if isinstance(invalid, list) and invalid
        else [call for call in made if call["type"] != "tool_call"],
    }
    return {name: each for name, each in calls.items() if each}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"] if isinstance(call.get("function"), dict) else {}
    named = {**_texts(function, "name"), **_texts(call, "name", "id")}
    given = call["args"] if "args" in call else function.get("arguments")
    text = {"args": given} if isinstance(given, str) else {}
    if "name" not in named:
        return {"type": "invalid_tool_call", "error": "Incomplete tool call.", **named, **text}
    try:
        args = (json.loads(given) if given else {}) if isinstance(given, str) else {} if given is None else given
    except ValueError:
        return {"type": "invalid_tool_call", "error": "Malformed args.", **named, **text}
    return {"type": "tool_call", **named, "args": args}


def _invalid(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"] if isinstance(call.get("function"), dict) else {}
    error = call["error"] if isinstance(call.get("error"), str) else "Malformed args."
    named = {**_texts(function, "name"), **_texts(call, "name", "id")}
    return {"type": "invalid_tool_call", **named, **_texts(call, "args"), "error": error}
