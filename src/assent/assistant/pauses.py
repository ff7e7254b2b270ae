"""Where the graph waits for a person: the values it pauses with, and how it reads what they say.

The answers are read by the dialect of the question, as everywhere in Assent. One that does not fit is asked for again:
raised as an error it would stay in the thread, and every later answer would fail on it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolCall
from langgraph.types import interrupt

from assent import dialects
from assent.assistant.messages import call_id
from assent.assistant.state import AskedCall, ClarificationInfo, PendingApproval, PendingClarification, ToolCallInfo
from assent.domain.canonical import Json
from assent.domain.grants import GATE
from assent.domain.questions import Interrupt, InvalidDecision, Verdict

log = logging.getLogger(__name__)


def clarify(asked: Sequence[ToolCall]) -> dict[str, str]:
    """What the person says to each question, by the call's id."""
    value: PendingClarification = {"kind": "clarification", "clarifications": [_question(call) for call in asked]}
    return {call_id(call): verdict.message or "" for call, verdict in zip(asked, _pause(value), strict=True)}


def confirm(calls: Sequence[ToolCall], asking: Mapping[str, AskedCall]) -> dict[str, Verdict]:
    """What the person says to each call that is asked about, by its id. It only leads the graph: what runs is the
    gate's word."""
    asked = [call for call in calls if call_id(call) in asking]
    if not asked:
        return {}
    infos = [_info(call, asking[call_id(call)]) for call in asked]
    value: PendingApproval = {"kind": "confirmation", "tool_calls": infos, "gate": GATE}
    return {call_id(call): verdict for call, verdict in zip(asked, _pause(value), strict=True)}


def elicit(value: dict[str, Any]) -> Json:
    """What the person says to a link or a form, as MCP writes it."""
    [verdict] = _pause(value)
    answer: dict[str, Json] = {"action": str(verdict.verb)}
    return answer if verdict.args is None else {**answer, "content": verdict.args}


def _pause(value: Any) -> tuple[Verdict, ...]:
    question = dialects.recognise(Interrupt("", value))
    while True:
        answer = interrupt(value)
        try:
            verdicts = {one.key: one for one in dialects.decode(question, answer).verdicts}
        except InvalidDecision as error:
            log.info("an answer did not fit its question, which is asked again: %s", error)
            continue
        return tuple(verdicts[action.key] for action in question.actions)


def _question(call: ToolCall) -> ClarificationInfo:
    context = call["args"].get("context")
    return {
        "call_id": call_id(call),
        "question": str(call["args"].get("question") or "What exactly do you want?"),
        "context": str(context) if context else "",
    }


def _info(call: ToolCall, told: AskedCall) -> ToolCallInfo:
    info: ToolCallInfo = {"call_id": call_id(call), "tool_name": call["name"], "arguments": call["args"]}
    if told["schema"]:
        info["args_schema"] = told["schema"]
    if told["about"]:
        info["description"] = told["about"]
    return info
