"""The meaning of a tool message: a result, an error, a person's rejection, a login that is needed, or a placeholder.

`additional_kwargs["assent"]` may say so outright, as `{"kind": "rejected", "text": "…"}`; else it is read off the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage


class Kind(StrEnum):
    DONE = "done"
    FAILED = "failed"
    REJECTED = "rejected"
    DEFERRED = "deferred"
    LOGIN = "login"


@dataclass(frozen=True, slots=True)
class Result:
    kind: Kind
    text: str
    data: Any = None


_I = re.IGNORECASE
_REJECTED = re.compile(
    r"^\W*(?:(?:tool\s+)?call\s+(?:was\s+)?(?:rejected|declined|denied)"
    r"|(?:(?:this|the|your)\s+)?(?:(?:tool\s+)?call|action|user|person|reviewer|human|request)?\s*(?:has\s+"
    r"|was\s+)?(?:been\s+)?"
    r"(?:rejected|declined|denied|refused|not\s+approved|disapproved))\b(?P<rest>.*)$",
    _I | re.DOTALL,
)
_FEEDBACK = re.compile(
    r"^.*?(?:\b(?:feedback|reason|saying|because|message|said)\b\W*?|:)[:\s]*(?P<feedback>\S.*)$", _I | re.DOTALL
)
_WHO = re.compile(r"^\W*by\s+(?:the\s+|a\s+)?\w+\W*$", _I)
_DEFERRED = re.compile(
    r"^\W*(?:deferred|postponed|placeholder|pending|waiting|on\s+hold|not\s+(?:yet\s+)?(?:executed|run|called)"
    r"|(?:this\s+|the\s+)?(?:tool\s+)?(?:call|execution)\s+(?:is\s+|was\s+|has\s+been\s+)?(?:deferred|postponed"
    r"|pending|approved|replaced|continued)|approved\b|will\s+be\b)",
    _I,
)
_LOGIN = re.compile(r"\b(?:sign[\s-]?in|log[\s-]?in|authori[sz](?:e|ation)|oauth|consent|connect\s+your)\b", _I)
_URL = re.compile(r"https?://[^\s\"'<>)\]}]+")
_SAID = re.compile(
    r"^\W*(?:the\s+)?(?:user|person|human|reviewer)(?:['’]s)?\s+(?:has\s+)?(?:answered|answers?|response|responded"
    r"|replied|reply|said|clarified|clarification)[^:]{0,40}:\s*",
    _I,
)


def read(message: ToolMessage) -> Result:
    text, data = content(message), _data(message)
    told = message.additional_kwargs.get("assent")
    if isinstance(told, dict) and told.get("kind") in list(Kind):
        return Result(Kind(told["kind"]), str(told.get("text") or text), data)
    refused = _refusal(text, data)
    if refused is not None:
        return Result(Kind.REJECTED, refused, data)
    if _URL.search(text) and _LOGIN.search(text) and not isinstance(data, dict):
        return Result(Kind.LOGIN, text, data)
    if message.status == "error" or re.match(r"\W*error\b", text, _I):
        return Result(Kind.FAILED, text, data)
    if not isinstance(data, dict) and _DEFERRED.match(text):
        return Result(Kind.DEFERRED, text, data)
    return Result(Kind.DONE, text, data)


def answer(message: ToolMessage) -> str:
    """A person's answer to a question, however it is wrapped."""
    data = _data(message)
    if isinstance(data, dict):
        said = next(
            (data[key] for key in ("response", "answer", "text", "message") if isinstance(data.get(key), str)), None
        )
        if said is not None:
            return str(said)
    return _SAID.sub("", data if isinstance(data, str) else content(message))


def content(message: BaseMessage) -> str:
    """The text of a message, whether it is a string or blocks."""
    if isinstance(message.content, str):
        return message.content.strip()
    blocks = (block if isinstance(block, str) else str(block.get("text") or "") for block in message.content)
    return "\n".join(block for block in blocks if block).strip()


def url(text: str) -> str | None:
    match = _URL.search(text)
    return match[0].rstrip(".,;") if match else None


def _data(message: ToolMessage) -> Any:
    artifact = message.artifact
    if isinstance(artifact, dict) and isinstance(artifact.get("structured_content"), dict):
        return artifact["structured_content"]
    try:
        return json.loads(content(message))
    except (ValueError, RecursionError):
        return None


def _refusal(text: str, data: Any) -> str | None:
    if isinstance(data, dict):
        refused = data.get("approved") is False or str(data.get("status")).lower() in ("rejected", "declined", "denied")
        said = next((data[key] for key in ("feedback", "reason", "message") if isinstance(data.get(key), str)), "")
        return str(said) if refused else None
    match = _REJECTED.match(text)
    if not match:
        return None
    feedback = _FEEDBACK.match(match["rest"])
    said = (feedback["feedback"] if feedback else _WHO.sub("", match["rest"])).strip(" :,")
    return said[1:-1] if len(said) > 1 and said[0] + said[-1] in ('""', "“”") else said
