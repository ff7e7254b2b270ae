"""The gate's questions and the parser of their answers: LangChain's per-call approval, with the gate's mark on it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assent.errors import InvalidDecision
from assent.kernel.canonical import Json
from assent.review import dialects
from assent.review.dialects.langchain import tool_approval
from assent.review.model.grants import GATE, MARKS, Call, Grant
from assent.review.model.questions import Interrupt, Verdict
from assent.review.model.secrets import cover_of

VERBS = ("approve", "edit", "reject", "respond")
IN_DOUBT = "assent.in_doubt"
"""The `kind` of the question about the outcome of an interrupted call."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A question about a call: its text, the allowed verbs, and the schema of edited arguments."""

    description: str
    allowed: Sequence[str] = VERBS
    args_schema: Json = None
    as_hitl_request: bool = False
    """In the format of LangChain's batched mode; the gate's marks are in the schema of the answer."""

    def question(self, call: Call, reason: str | None) -> tuple[Json, Json]:
        """The value of the interrupt and the schema of its answer. `reason`: why it is asked again."""
        value, schema = self._value(call), self._schema(call)
        if reason is None:
            return value, schema
        if self.as_hitl_request:
            return value, {**schema, MARKS: {**schema[MARKS], "reason": reason}}
        return {**value, "reason": reason}, schema

    def read(self, call: Call, answer: Json) -> Verdict | None:
        """The verdict; None for an unreadable answer, which repeats the question."""
        question = dialects.recognise(Interrupt("", self._value(call), self._schema(call)))
        try:
            [verdict] = dialects.decode(question, answer).verdicts
        except InvalidDecision:
            return None
        return verdict

    def _value(self, call: Call) -> dict[str, Json]:
        if self.as_hitl_request:
            request = {"name": call.tool, "args": call.args, "description": self.description}
            config = {"action_name": call.tool, "allowed_decisions": [verb for verb in VERBS if verb in self.allowed]}
            return {"action_requests": [request], "review_configs": [config]}
        value = {
            "type": tool_approval.NAME,
            "gate": GATE,
            "tool_call_id": call.call_id,
            "name": call.tool,
            "args": call.args,
            "description": self.description,
        }
        # without "edit", the answer's schema does not contain the arguments' schema
        schema_missing = self.args_schema is not None and "edit" not in self.allowed
        return {**value, "args_schema": self.args_schema} if schema_missing else value

    def _schema(self, call: Call) -> Json:
        decision = self._decision_schema(call)
        if not self.as_hitl_request:
            return decision
        definitions = decision.pop("$defs", None)
        decisions = {"type": "array", "items": decision, "minItems": 1, "maxItems": 1}
        schema = {"type": "object", "properties": {"decisions": decisions}, "required": ["decisions"]}
        schema[MARKS] = {"gate": GATE, "tool_call_id": call.call_id}
        return {**schema, "$defs": definitions} if definitions else schema

    def _decision_schema(self, call: Call) -> dict[str, Json]:
        args = dict(self.args_schema or {"type": "object"})
        definitions = args.pop("$defs", None)
        branches = [_branch(verb, call.tool, args) for verb in VERBS if verb in self.allowed]
        schema = branches[0] if len(branches) == 1 else {"oneOf": branches}
        return {**schema, "$defs": definitions} if definitions else schema


def doubt(grant: Grant, call: Call) -> tuple[Json, Json]:
    """The question about the outcome, which only a person can answer. It belongs to the item that allowed the call."""
    asked = {"kind": IN_DOUBT, "gate": GATE, "item_id": grant.item_id, "grant_id": grant.id}
    return {**asked, "tool_call_id": call.call_id, "name": call.tool, "args": call.args}, None


def rejection(name: str, call_id: str, reason: str | None) -> str:
    """The message to the model, worded as in LangChain's own middleware."""
    if reason:
        return f"User rejected the tool call for `{name}` with reason: {reason}"
    return (
        f"User rejected the tool call for `{name}` with id {call_id}. The tool was not executed. "
        "Do not retry this tool call unless the user explicitly requests it."
    )


def prohibition(name: str, rule: str) -> str:
    return f"The policy never lets `{name}` run like this (rule {rule!r}). It was not executed. Do not retry it."


def description(prefix: str, name: str, args: Json, schema: Json) -> str:
    """The default text of a question, with the secrets in the arguments masked."""
    shown = json.dumps(cover_of(schema).masked(args), ensure_ascii=False, default=str)
    return f"{prefix}\n\nTool: {name}\nArgs: {shown}"


def args_schema(tool: Any) -> Json:
    """The JSON Schema of a tool's arguments as the model sees it, plus the author's annotations that LangChain drops,
    such as the mark of a secret."""
    seen, written = (_json_schema(getattr(tool, name, None)) for name in ("tool_call_schema", "args_schema"))
    if seen is None or written is None:
        return seen
    author_properties = written.get("properties", {})
    properties = {name: author_properties.get(name, property) for name, property in seen.get("properties", {}).items()}
    definitions = {**seen.get("$defs", {}), **written.get("$defs", {})}
    return {**seen, "properties": properties, **({"$defs": definitions} if definitions else {})}


def _json_schema(schema: Any) -> dict[str, Any] | None:
    try:
        json_schema = schema.model_json_schema() if inspect.isclass(schema) else schema  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - an author's type without a JSON Schema, such as an injected one
        return None
    return json_schema if isinstance(json_schema, dict) else None


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
