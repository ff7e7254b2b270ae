"""The assistant's questions and answers in the format of `/run` and `/resume`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from assent.review.item_views import View
from assent.review.model.items import Execution
from assent.threads.model.frames import ATTEMPT_STRIDE, Frame

NO_ACTION: View = {"kind": "no_action_needed"}
ELSEWHERE = "decide it in the inbox"
COMPLETED = "completed"

_IN_DOUBT = "a call was interrupted while it ran: record its outcome in the inbox"
_ELICITED = {"form": "form_elicitation", "oauth": "oauth_url"}
_STATUSES = {
    "clarification": "clarification_required",
    "confirmation": "confirmation_required",
    "oauth_url": "oauth_required",
    "form_elicitation": "form_required",
}
_FROM_THE_MODEL = ("ai", "assistant", "AIMessageChunk")


@dataclass(frozen=True, slots=True)
class Reply:
    """The assistant's answer, or its question."""

    thread_id: str
    response: str | None = None
    asked: View | None = None
    """The pending item, as the caller sees it."""
    waits: bool = False
    outcome: str | None = None
    """The reason why the answer is not complete, if it is not."""

    @property
    def action(self) -> View | None:
        return pending_action(self.asked) if self.waits else None


@dataclass(frozen=True, slots=True)
class Words:
    """A streamed part of the assistant's text."""

    message_id: str
    text: str


def kind_of(item: View) -> str | None:
    """The kind of question, one of four; None for others, which only the inbox can answer."""
    if item["execution"] == Execution.IN_DOUBT:
        return None
    if item["dialect"] in _STATUSES:
        return str(item["dialect"])
    return _ELICITED.get(item["type"]) if len(item["actions"]) == 1 else None


def status_of(item: View | None) -> str:
    kind = kind_of(item) if item else None
    return _STATUSES[kind] if kind else "decision_required"


def pending_action(item: View | None) -> View:
    """The pending action in the API's format."""
    kind = kind_of(item) if item else None
    if item is None or kind is None:
        return {"kind": "other", **(_named(item) if item else {"message": ELSEWHERE})}
    if kind == "clarification":
        return {"kind": kind, "clarifications": [_clarification(action) for action in item["actions"]]}
    if kind == "confirmation":
        return {"kind": kind, "tool_calls": [_tool_call(action) for action in item["actions"]]}
    [action] = item["actions"]
    question = {"kind": kind, "message": action["description"] or ""}
    if kind == "oauth_url":
        return {**question, "url": action["args"]["url"], "elicitation_id": action["call_id"]}
    return {**question, "schema": action["schema"]}


def last_answer(values: Any) -> str:
    """The text of the last message that the model wrote."""
    messages = values.get("messages") if isinstance(values, Mapping) else None
    for message in reversed(messages if isinstance(messages, list) else []):
        if _is_from_the_model(message):
            return _text(message.get("content"))
    return ""


def outcome_of(values: Any) -> str | None:
    """The reason why the request ended without a complete answer, if it did."""
    outcome = values.get("outcome") if isinstance(values, Mapping) else None
    return None if outcome in (None, COMPLETED) else str(outcome)


def words_of(frame: Frame) -> Words | None:
    """The model's words in this frame, if any."""
    if frame.event != "messages":
        return None
    message, _ = orjson.loads(frame.data)
    text = _text(message.get("content")) if _is_from_the_model(message) else ""
    return Words(str(message.get("id")), text) if text else None


def begins(frame: Frame) -> bool:
    """Whether it is the first frame of an attempt."""
    return frame.seq % ATTEMPT_STRIDE == 1


def _is_from_the_model(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("type", message.get("role")) in _FROM_THE_MODEL


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(
        part if isinstance(part, str) else str(part.get("text", ""))
        for part in parts
        if isinstance(part, str) or (isinstance(part, Mapping) and part.get("type") == "text")
    )


def _named(item: View) -> View:
    message = _IN_DOUBT if item["execution"] == Execution.IN_DOUBT else ELSEWHERE
    return {"item_id": item["id"], "title": item["title"], "url": f"/inbox/{item['id']}", "message": message}


def _clarification(action: View) -> View:
    asked = action["args"]
    return {"call_id": action["call_id"], "question": asked["question"], "context": asked["context"] or ""}


def _tool_call(action: View) -> View:
    call = {"call_id": action["call_id"], "tool_name": action["name"], "arguments": action["args"]}
    return {**call, "description": action["description"]} if action["description"] else call
