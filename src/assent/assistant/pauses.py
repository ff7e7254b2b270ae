"""The graph's pauses for a person: their values, and the decoding of answers.

Answers are decoded by the dialect of the question, as everywhere in Assent. After an invalid answer the question is
repeated: an error would stay in the thread, and every later answer would fail on it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolCall
from langgraph.types import interrupt

from assent.assistant.messages import call_id
from assent.assistant.state import AskedCall, ClarificationInfo, PendingApproval, PendingClarification, ToolCallInfo
from assent.errors import InvalidDecision
from assent.kernel.canonical import Json
from assent.review import dialects
from assent.review.model.grants import GATE
from assent.review.model.questions import Interrupt, Verdict

log = logging.getLogger(__name__)


def clarify(asked: Sequence[ToolCall]) -> dict[str, str]:
    """The person's answers, by call id."""
    value: PendingClarification = {"kind": "clarification", "clarifications": [_question(call) for call in asked]}
    return {call_id(call): verdict.message or "" for call, verdict in zip(asked, _pause(value), strict=True)}


def confirm(calls: Sequence[ToolCall], asking: Mapping[str, AskedCall]) -> dict[str, Verdict]:
    """The person's verdicts, by call id. They only steer the graph: the gate decides what runs."""
    asked = [call for call in calls if call_id(call) in asking]
    if not asked:
        return {}
    infos = [_info(call, asking[call_id(call)]) for call in asked]
    value: PendingApproval = {"kind": "confirmation", "tool_calls": infos, "gate": GATE}
    return {call_id(call): verdict for call, verdict in zip(asked, _pause(value), strict=True)}


def elicit(value: dict[str, Any]) -> Json:
    """The person's answer to a link or a form, in MCP's format."""
    [verdict] = _pause(value)
    answer: dict[str, Json] = {"action": str(verdict.verb)}
    return answer if verdict.args is None else {**answer, "content": verdict.args}


def _pause(value: Any) -> tuple[Verdict, ...]:
    question = dialects.recognise(Interrupt("", value))
    while True:
        answer = interrupt(value)
        try:
            verdicts = {verdict.key: verdict for verdict in dialects.decode(question, answer).verdicts}
        except InvalidDecision as error:
            log.info("decode answer failed: the question is repeated: %s", error)
            continue
        return tuple(verdicts[action.key] for action in question.actions)


def _question(call: ToolCall) -> ClarificationInfo:
    context = call["args"].get("context")
    return {
        "call_id": call_id(call),
        "question": str(call["args"].get("question") or "What exactly do you want?"),
        "context": str(context) if context else "",
    }


def _info(call: ToolCall, details: AskedCall) -> ToolCallInfo:
    info: ToolCallInfo = {"call_id": call_id(call), "tool_name": call["name"], "arguments": call["args"]}
    if details["schema"]:
        info["args_schema"] = details["schema"]
    if details["about"]:
        info["description"] = details["about"]
    return info
