"""Messages of A2A as input of graphs, and messages of graphs as A2A's.

Other agents see what people would: the texts and files of users and agents, never system prompts or results of tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assent.kernel.ids import new_id
from assent.surfaces.a2a.wire import AGENT, USER, role_of
from assent.surfaces.http.jsonrpc import INVALID_PARAMS, RpcError

Json = dict[str, Any]
CONTENT_TYPE_NOT_SUPPORTED = -32005
_ROLES = {"human": USER, "user": USER, "ai": AGENT, "aimessagechunk": AGENT, "assistant": AGENT, "agent": AGENT}
_MEDIA = ("image", "audio", "video", "file")
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message of a client, checked."""

    id: str
    role: str
    context_id: str | None
    task_id: str | None
    parts: tuple[Json, ...]
    whole: Json

    @classmethod
    def read(cls, message: Any) -> Incoming:
        if not isinstance(message, dict):
            raise _invalid("Missing or invalid 'message' in params")
        identity, role, parts = message.get("messageId"), role_of(message.get("role")), message.get("parts")
        if not isinstance(identity, str) or not identity:
            raise _invalid("Missing required 'messageId' in message")
        if role is None:
            raise _invalid("Missing or unknown 'role' in message")
        if not isinstance(parts, list) or not parts:
            raise _invalid("Message must contain at least one part")
        return cls(
            identity, role, _text(message, "contextId"), _text(message, "taskId"), tuple(map(_part, parts)), message
        )

    @property
    def talks(self) -> bool:
        """Whether it needs a graph that takes messages."""
        return any("data" not in part for part in self.parts)

    @property
    def data(self) -> Json:
        """The fields of its data parts."""
        fields: Json = {}
        for part in self.parts:
            if "data" in part:
                if not isinstance(part["data"], dict):
                    raise RpcError(CONTENT_TYPE_NOT_SUPPORTED, "a data part must contain a JSON object")
                fields |= part["data"]
        return fields

    @property
    def input(self) -> Json:
        """The input of the graph: texts and files as one message, data parts as fields of the state."""
        content = [_block(part) for part in self.parts if "data" not in part]
        if not content:
            return self.data
        whole = content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content
        said = {"role": "human" if self.role == USER else "assistant", "content": whole, "id": self.id}
        return {"messages": [said], **self.data}

    @property
    def answer(self) -> Any:
        """Its answer to a question: `resume` of its command or data part, or its text. `is_answer` tells whether it
        has one."""
        command = self.whole.get("command")
        if isinstance(command, dict) and "resume" in command:
            return command["resume"]
        if "resume" in self.data:
            return self.data["resume"]
        texts = [part["text"] for part in self.parts if "text" in part]
        return "\n".join(texts) if texts else _NOTHING

    @property
    def is_answer(self) -> bool:
        return self.answer is not _NOTHING

    @property
    def resumes(self) -> bool:
        """Whether it names its answer as one, rather than by its text alone."""
        command = self.whole.get("command")
        return (isinstance(command, dict) and "resume" in command) or "resume" in self.data


def message(role: str, parts: Sequence[Json], *, task_id: str, context_id: str, identity: str | None = None) -> Json:
    return {
        "messageId": identity or new_id(),
        "role": role,
        "parts": list(parts),
        "taskId": task_id,
        "contextId": context_id,
    }


def history(values: Any, *, task_id: str, context_id: str, length: int | None) -> list[Json]:
    """The public messages of a state, at most the last `length`."""
    shown = [
        message(role, parts, task_id=task_id, context_id=context_id, identity=said.get("id"))
        for said in _messages(values)
        if (role := _role(said)) is not None and (parts := parts_of(said.get("content")))
    ]
    return shown if length is None else shown[-length:] if length else []


def reply(values: Any) -> list[Json]:
    """The agent's answer: its last message since the user's; for a state without messages, the whole state."""
    if not isinstance(values, dict) or not isinstance(values.get("messages"), list):
        told = [{"text": str(values)}]
        return [*told, {"data": values}] if isinstance(values, dict) else told
    for said in reversed(_messages(values)):
        role = _role(said)
        if role == USER:
            break
        if role == AGENT and (parts := parts_of(said.get("content"))):
            return parts
    return [{"text": ""}]


def spoken(messages: Any) -> str:
    """The text of an agent's messages in a frame."""
    if not isinstance(messages, list):
        return ""
    said = [
        part
        for message in messages
        if isinstance(message, dict) and _role(message) == AGENT
        for part in _content(message)
    ]
    return "".join(part["text"] for part in said if "text" in part)


def parts_of(content: Any) -> list[Json]:
    """The content of a message as parts; empty texts are left out, adjacent ones joined."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    parts: list[Json] = []
    for block in content if isinstance(content, list) else []:
        part = {"text": block} if isinstance(block, str) else _shown(block) if isinstance(block, dict) else None
        if part is None:
            continue
        if "text" in part and parts and "text" in parts[-1]:
            parts[-1] = {"text": parts[-1]["text"] + part["text"]}
        elif part.get("text") != "":
            parts.append(part)
    return parts


def _content(said: Mapping[str, Any]) -> list[Json]:
    return parts_of(said.get("content"))


def _messages(values: Any) -> list[Json]:
    listed = values.get("messages") if isinstance(values, dict) else None
    return [said for said in listed if isinstance(said, dict)] if isinstance(listed, list) else []


def _role(said: Mapping[str, Any]) -> str | None:
    named = said.get("type") or said.get("role")
    return _ROLES.get(named.lower()) if isinstance(named, str) else None


def _part(sent: Any) -> Json:
    """A part in the form of 1.0, from either form."""
    if not isinstance(sent, dict):
        raise RpcError(CONTENT_TYPE_NOT_SUPPORTED, "a part must be an object")
    part: Json = sent
    file = part.get("file")
    if isinstance(file, dict):
        names = {"bytes": "raw", "uri": "url", "mimeType": "mediaType", "name": "filename"}
        part = {names[name]: value for name, value in file.items() if name in names}
    kinds = [name for name in ("text", "data", "raw", "url") if name in part]
    if len(kinds) != 1:
        raise RpcError(CONTENT_TYPE_NOT_SUPPORTED, "a part must contain exactly one of text, data and a file")
    if kinds[0] != "data" and not isinstance(part[kinds[0]], str):
        raise RpcError(CONTENT_TYPE_NOT_SUPPORTED, f"{kinds[0]} of a part must be a text")
    return part


def _block(part: Json) -> Json:
    """A content block of LangChain. Addresses are passed on and never fetched here."""
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    kind = part.get("mediaType")
    top = kind.partition("/")[0].lower() if isinstance(kind, str) else ""
    source = {"base64": part["raw"]} if "raw" in part else {"url": part["url"]}
    named = {"extras": {"filename": part["filename"]}} if part.get("filename") else {}
    return {"type": top if top in _MEDIA else "file", **source, **({"mime_type": kind} if kind else {}), **named}


def _shown(block: Json) -> Json | None:
    if block.get("type") == "text":
        return {"text": block["text"]} if isinstance(block.get("text"), str) else None
    if block.get("type") not in _MEDIA:
        return None
    raw, url = block.get("base64") or block.get("data"), block.get("url")
    if not isinstance(raw or url, str):
        return None
    name = block.get("filename") or (block.get("extras") or {}).get("filename")
    source = {"raw": raw} if isinstance(raw, str) else {"url": url}
    media = {"mediaType": block["mime_type"]} if isinstance(block.get("mime_type"), str) else {}
    return {**source, **media, **({"filename": name} if isinstance(name, str) else {})}


def _text(message: Json, name: str) -> str | None:
    value = message.get(name)
    if value is not None and not isinstance(value, str):
        raise _invalid(f"{name} must be a string")
    return value or None


def _invalid(text: str) -> RpcError:
    return RpcError(INVALID_PARAMS, text)
