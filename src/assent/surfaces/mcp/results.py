"""Ends of runs as results of MCP tools.

The text of a finished run is that of LangGraph's server, the Python form of its values; programs read the same values
as JSON in `structuredContent`.
"""

from __future__ import annotations

import json
from typing import Any

from assent.errors import AssentError
from assent.runs.calls import Ended, Pause
from assent.surfaces.mcp.tools import CONTINUE

Json = dict[str, Any]


def result(ended: Ended) -> Json:
    if ended.error is not None:
        return _failed(f"{ended.error.get('error')}: {ended.error.get('message', '')}".removesuffix(": "))
    if ended.pause is not None:
        return _paused(ended.thread_id, ended.pause)
    if ended.canceled:
        return _failed("the run was cancelled")
    structured = {"structuredContent": ended.values} if isinstance(ended.values, dict) else {}
    return {"content": [_text(repr(ended.values))], **structured}


def refused(error: AssentError) -> Json:
    """A refusal that the model can read and act on."""
    hint = f" Hint: {error.hint}" if error.hint else ""
    return _failed(f"{error.message}{'' if error.message.endswith('.') else '.'}{hint}")


def _paused(thread_id: str, pause: Pause) -> Json:
    questions = [{**question, "answered_by": _answerer(pause, question)} for question in pause.questions]
    waiting: Json = {"status": "waiting", "thread_id": thread_id, "questions": questions}
    if pause.stopped_before:
        waiting["stopped_before"] = list(pause.stopped_before)
    if pause.items:
        waiting["items"] = sorted(pause.items.values())
    waiting["continue"] = {"tool": CONTINUE, "arguments": _arguments(thread_id, pause)}
    told = f"{_sentence(pause)}\n\n{json.dumps(waiting, ensure_ascii=False)}"
    return {"content": [_text(told)], "structuredContent": waiting}


def _answerer(pause: Pause, question: Json) -> str:
    return "a person" if question["id"] in pause.items else "you"


def _arguments(thread_id: str, pause: Pause) -> Json:
    open_ids = [question["id"] for question in pause.questions if question["id"] not in pause.items]
    return {"thread_id": thread_id, **({"answers": dict.fromkeys(open_ids, "…")} if open_ids else {})}


def _sentence(pause: Pause) -> str:
    if pause.is_gated:
        return (
            "The run is paused: it waits for the decision of a person, in the inbox. It is not done, and you cannot "
            f"decide it. Call {CONTINUE} with the thread_id later to get the result."
        )
    if pause.questions:
        return f"The run is paused: it waits for answers. Call {CONTINUE} with the thread_id and the answers by id."
    return f"The run is paused before a step. Call {CONTINUE} with the thread_id to let it continue."


def _failed(text: str) -> Json:
    return {"isError": True, "content": [_text(text)]}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}
