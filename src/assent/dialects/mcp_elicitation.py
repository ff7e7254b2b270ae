"""LangChain's `MCPAdapter` asking for an MCP server: several forms and links in one interrupt, answered by their keys.

The adapter checks no schema and the server would refuse wrong content only after the call was repeated, so every form
is checked here; content is flat, as MCP wants it.
"""

from __future__ import annotations

from collections.abc import Sequence

from assent.dialects import elicitation, raw
from assent.dialects.fields import Fields
from assent.dialects.verdicts import DECISION, NOTHING, RULES, Layout, pair
from assent.domain.canonical import Json
from assent.domain.questions import (
    Interrupt,
    InvalidDecision,
    ItemType,
    Question,
    Verb,
    Verdict,
    headline,
)

NAME = "mcp_elicitation"
EXACT = False

_ALLOWED = tuple(elicitation.VERBS.values())
_MODES = {"form": ItemType.FORM, "url": ItemType.OAUTH}


def recognise(interrupt: Interrupt) -> Question | None:
    if not isinstance(interrupt.value, dict) or interrupt.value.get("type") != NAME:
        return None
    fields = Fields(interrupt.value)
    tool = fields.text("tool_name")
    requests = fields.each("requests")
    actions = tuple(_action(str(index), tool, request) for index, request in enumerate(requests))
    for request, action in zip(requests, actions, strict=True):
        if sum(other.call_id == action.call_id for other in actions) > 1:
            request.fault("key", "is not unique")
    if fields.problems:
        return raw.question(interrupt, fields.problems)
    item_type = ItemType.OAUTH if all(map(_is_link, actions)) else ItemType.FORM
    description = actions[0].description if len(actions) == 1 else None
    return Question(NAME, item_type, headline(tool, "Request"), description, actions, (), interrupt)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    rules = {False: RULES, True: {**RULES, Verb.ACCEPT: NOTHING}}
    chosen = pair(question, verdicts, RULES, layout)
    problems = [problem for action, verdict in chosen for problem in _content_faults(action, verdict, layout)]
    if problems:
        raise InvalidDecision(problems)
    return {"responses": {action.call_id: elicitation.write(verdict) for action, verdict in chosen}}
