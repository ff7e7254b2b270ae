"""The prompts of the models. The offline planner ignores them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

_EXECUTOR = (
    "You are an assistant that gets things done with tools. Now is {now}.\n"
    "- If something that a tool needs is missing or has several meanings, call {clarify}; never guess.\n"
    "- Look up what can be looked up (ids, times of events) before you ask.\n"
    "- Some calls are shown to a person first. If one is rejected, take the feedback seriously: propose a "
    "corrected call, or say that you leave it.\n"
    "- A call marked as deferred is made in the message after it. Do not make it again.\n"
    "- In the end say in a sentence or two what was done and what was not."
)
_ROUTER = (
    "Decide which types of tools the assistant may use for the user's last request. Name every type that it needs and "
    "no other; none if it needs no tool. The types: {types}."
)


def executor(clarify: str, now: datetime) -> str:
    return _EXECUTOR.format(clarify=clarify, now=now.strftime("%A, %Y-%m-%d %H:%M %z").strip())


def router(types: Sequence[str]) -> str:
    return _ROUTER.format(types=", ".join(types))


def routing_schema(types: Sequence[str]) -> dict[str, Any]:
    """The schema of the router's answer."""
    allowed = {"type": "array", "items": {"type": "string", "enum": list(types)}}
    return {
        "title": "AllowedTools",
        "description": "The types of tools that the request may use.",
        "type": "object",
        "properties": {"types": allowed},
        "required": ["types"],
    }
