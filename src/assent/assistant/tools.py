"""The tools of an MCP server: their types, and whether they need approval.

The type comes from the configured mapping, else from the server's tags. The need for approval comes from the configured
list, else from the server's annotations. An unknown tool needs approval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from assent.kernel.canonical import Json
from assent.review.model.schemas import validation

CLARIFY = "request_clarification"
OTHER = "other"
KEY = "idempotency_key"
"""The parameter by which a tool recognises a retry. The gate sets it, not the model."""

TOOL_MAPPING: Mapping[str, tuple[str, ...]] = {
    "calendar": ("*calendar*", "*event*", "book_room"),
    "maps": ("*place*", "*direction*"),
}
"""Default types by name, if neither the operator nor the server sets any."""

CLARIFICATION: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": CLARIFY,
        "description": "Ask the user for information that is missing. Never guess what they did not say.",
        "parameters": {
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "What to ask, in one sentence."},
                "context": {"type": "string", "description": "Why it is asked, in a few words."},
            },
            "required": ["question"],
        },
    },
}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as its server describes it."""

    name: str
    description: str = ""
    schema: Json = None
    tags: tuple[str, ...] = ()
    reads_only: bool = False

    @property
    def idempotent(self) -> bool:
        return KEY in (self._schema.get("properties") or {})

    @property
    def shown(self) -> dict[str, Any]:
        """The tool as a model sees it."""
        properties = {name: of for name, of in (self._schema.get("properties") or {}).items() if name != KEY}
        required = [name for name in self._schema.get("required") or () if name != KEY]
        parameters = {**self._schema, "type": "object", "properties": properties, "required": required}
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}

    @property
    def parameters(self) -> Json:
        return self.shown["function"]["parameters"]

    def flaw(self, args: Json) -> str | None:
        """The problems of the arguments, for the model."""
        flaws = validation.problems(self.parameters, args)
        return "; ".join(f"{flaw.path or 'the arguments'}: {flaw.message}" for flaw in flaws) or None

    @property
    def _schema(self) -> dict[str, Any]:
        return self.schema if isinstance(self.schema, dict) else {}


@dataclass(frozen=True, slots=True)
class Rules:
    """The operator's rules for tools: `mapping` maps types to names or patterns, `hitl` lists tools that need approval.

    With `hitl`, all other tools in `mapping` run freely; without it, those with the server's `readOnlyHint`.
    """

    mapping: Mapping[str, Sequence[str]] | None = None
    hitl: Sequence[str] | None = None

    def type_of(self, tool: Tool) -> str:
        if self.mapping is not None:
            return _named(tool.name, self.mapping) or OTHER
        return next(iter(sorted(tool.tags)), None) or _named(tool.name, TOOL_MAPPING) or OTHER

    def asks(self, tool: Tool) -> bool:
        if self.hitl is None:
            return not tool.reads_only
        if any(fnmatchcase(tool.name, pattern) for pattern in self.hitl):
            return True
        return self.mapping is None or _named(tool.name, self.mapping) is None


@dataclass(frozen=True)
class Catalogue:
    """The tools of a server under the operator's rules."""

    tools: Sequence[Tool]
    rules: Rules = Rules()

    @cached_property
    def _by_name(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.tools if tool.name != CLARIFY}

    @cached_property
    def types(self) -> list[str]:
        return sorted({self.rules.type_of(tool) for tool in self._by_name.values()})

    def bound(self, allowed: Sequence[str]) -> list[dict[str, Any]]:
        """The tools for a request with these types, and the tool for questions."""
        usable = [tool.shown for name, tool in self._by_name.items() if self.usable(name, allowed)]
        return [CLARIFICATION, *usable]

    def tool(self, name: str) -> Tool | None:
        return self._by_name.get(name)

    def usable(self, name: str, allowed: Sequence[str]) -> Tool | None:
        tool = self._by_name.get(name)
        return tool if tool is not None and self.rules.type_of(tool) in allowed else None

    def asks(self, name: str, allowed: Sequence[str]) -> bool:
        """Whether a call needs approval. A call that will be refused anyway does not."""
        tool = self.usable(name, allowed)
        return tool is not None and self.rules.asks(tool)


def _named(name: str, mapping: Mapping[str, Sequence[str]]) -> str | None:
    return next((kind for kind, names in mapping.items() if any(fnmatchcase(name, pattern) for pattern in names)), None)
