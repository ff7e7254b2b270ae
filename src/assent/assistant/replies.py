"""Judges a model's reply: a reply that is not a whole answer must not be reported as one.

A provider marks a cut, filtered or refused reply in its own words; each reason below is the same for all of them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum

from langchain_core.messages import AIMessage

log = logging.getLogger(__name__)


class Outcome(StrEnum):
    """The end of a request. Only the first one is a success."""

    COMPLETED = "completed"
    EMPTY = "empty_reply"
    CUT = "cut_reply"
    FILTERED = "filtered_reply"
    REFUSED = "refused_reply"
    MODEL_CALLS = "model_call_limit"
    TOOL_CALLS = "tool_call_limit"


TEXTS = {
    Outcome.EMPTY: "The model gave an empty reply. Nothing more was done; ask again.",
    Outcome.CUT: "The model reached its maximum length, and its reply is not complete.",
    Outcome.FILTERED: "The model's provider filtered the reply. Nothing more was done.",
    Outcome.REFUSED: "The model refused to answer. Nothing more was done.",
    Outcome.MODEL_CALLS: "I stopped: this request reached its limit of {} model calls. Ask me to continue if you want.",
    Outcome.TOOL_CALLS: "I stopped: this request reached its limit of {} tool calls. Ask me to continue if you want.",
}

_REASONS = {
    "length": Outcome.CUT,
    "max_tokens": Outcome.CUT,
    "model_context_window_exceeded": Outcome.CUT,
    "content_filter": Outcome.FILTERED,
    "safety": Outcome.FILTERED,
    "recitation": Outcome.FILTERED,
    "blocklist": Outcome.FILTERED,
    "prohibited_content": Outcome.FILTERED,
    "spii": Outcome.FILTERED,
    "refusal": Outcome.REFUSED,
}
_REASON_KEYS = ("finish_reason", "stop_reason", "done_reason")


@dataclass(frozen=True, slots=True)
class Limits:
    """The most calls of one request: a model that keeps calling tools must come to an end. And the most messages that
    the model gets: a long thread would exceed what it can read."""

    model_calls: int = 25
    tool_calls: int = 50
    messages: int = 200


def outcome_of(reply: AIMessage) -> Outcome:
    """A reply with tool calls goes on, unless the provider withheld a part of it."""
    reason = _reason(reply)
    if reason in (Outcome.FILTERED, Outcome.REFUSED):
        return reason
    if reply.tool_calls or reply.invalid_tool_calls:
        return Outcome.COMPLETED
    if not reply.text.strip():
        return Outcome.EMPTY
    return reason or Outcome.COMPLETED


def completed(reply: AIMessage, outcome: Outcome) -> AIMessage:
    """The reply with a text that explains its outcome. Providers refuse a history with an empty message."""
    log.warning("model reply is not an answer: %s", outcome)
    if outcome is Outcome.CUT:
        return _told(reply.model_copy(update={"content": f"{reply.text}\n\n[{TEXTS[outcome]}]"}), outcome)
    text = reply.text.strip() or str(reply.additional_kwargs.get("refusal") or "")
    said = f"{TEXTS[outcome]}\n\n{text}" if text else TEXTS[outcome]
    return _told(AIMessage(said, id=reply.id, response_metadata=reply.response_metadata), outcome)


def stopped(outcome: Outcome, limit: int) -> AIMessage:
    log.warning("assistant request stopped: %s of %d", outcome, limit)
    return _told(AIMessage(TEXTS[outcome].format(limit)), outcome)


def _told(message: AIMessage, outcome: Outcome) -> AIMessage:
    kwargs = {**message.additional_kwargs, "assent": {"kind": "stopped", "reason": str(outcome)}}
    return message.model_copy(update={"additional_kwargs": kwargs})


def _reason(reply: AIMessage) -> Outcome | None:
    if reply.additional_kwargs.get("refusal"):
        return Outcome.REFUSED
    given = (reply.response_metadata.get(key) for key in _REASON_KEYS)
    return next(
        (_REASONS[reason.lower()] for reason in given if isinstance(reason, str) and reason.lower() in _REASONS), None
    )
