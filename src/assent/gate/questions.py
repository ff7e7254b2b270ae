"""What the gate asks a person, and how it reads the answer: LangChain's per-call approval, with our mark on it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assent import dialects
from assent.dialects import tool_approval
from assent.domain.canonical import Json
from assent.domain.grants import GATE, Call, Grant
from assent.domain.questions import Interrupt, InvalidDecision, Verdict

VERBS = ("approve", "edit", "reject", "respond")
IN_DOUBT = "assent.in_doubt"
"""The `kind` of the question how a call that was cut off has ended."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How to ask about a call: in which words, what may be answered, and what edited arguments must look like."""

    description: str
    allowed: Sequence[str] = VERBS
    args_schema: Json = None

    def question(self, call: Call, reason: str | None) -> tuple[Json, Json]:
        """The value of the interrupt and the schema of its answer. `reason`: why it is asked again."""
        value = self._value(call)
        return (value if reason is None else {**value, "reason": reason}), self._schema(call)

    def read(self, call: Call, answer: Json) -> Verdict | None:
        """What was said; None where it cannot be understood, so that it is asked again."""
        question = dialects.recognise(Interrupt("", self._value(call), self._schema(call)))
        try:
            [verdict] = dialects.decode(question, answer).verdicts
        except InvalidDecision:
            return None
        return verdict

    def _value(self, call: Call) -> dict[str, Json]:
        return {
            "type": tool_approval.NAME,
            "gate": GATE,
            "tool_call_id": call.call_id,
            "name": call.tool,
            "args": call.args,
            "description": self.description,
        }

    def _schema(self, call: Call) -> Json:
        args = dict(self.args_schema or {"type": "object"})
        definitions = args.pop("$defs", None)
        branches = [_branch(verb, call.tool, args) for verb in VERBS if verb in self.allowed]
        schema = branches[0] if len(branches) == 1 else {"oneOf": branches}
        return {**schema, "$defs": definitions} if definitions else schema


def doubt(grant: Grant, call: Call) -> tuple[Json, Json]:
    """The question to which only a person has the answer. It goes to the item that allowed the call."""
    asked = {"kind": IN_DOUBT, "gate": GATE, "item_id": grant.item_id, "grant_id": grant.id}
    return {**asked, "tool_call_id": call.call_id, "name": call.tool, "args": call.args}, None


def rejection(name: str, call_id: str, reason: str | None) -> str:
    """What the model is told, in the words of LangChain's own middleware."""
    if reason:
        return f"User rejected the tool call for `{name}` with reason: {reason}"
    return (
        f"User rejected the tool call for `{name}` with id {call_id}. The tool was not executed. "
        "Do not retry this tool call unless the user explicitly requests it."
    )


def prohibition(name: str, rule: str) -> str:
    return f"The policy never lets `{name}` run like this (rule {rule!r}). It was not executed. Do not retry it."


def args_schema(tool: Any) -> Json:
    """The JSON Schema of a tool's arguments, as the model sees it."""
    schema: Any = getattr(tool, "tool_call_schema", None)
    if inspect.isclass(schema):
        schema = schema.model_json_schema()  # type: ignore[attr-defined]
    return schema if isinstance(schema, dict) else None


def _branch(verb: str, name: str, args: Json) -> Json:
    properties: dict[str, Json] = {"type": {"const": verb}}
    required = ["type"]
    if verb == "edit":
        edited = {"type": "object", "properties": {"name": {"const": name}, "args": args}, "required": ["name", "args"]}
        properties["edited_action"] = edited
    if verb in ("reject", "respond"):
        properties["message"] = {"type": "string"}
    required += {"edit": ["edited_action"], "respond": ["message"]}.get(verb, [])
    return {"type": "object", "properties": properties, "required": required}
