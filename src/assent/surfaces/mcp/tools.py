"""Assistants as MCP tools: their names, their schemas, and the tool that continues a paused run."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from typing import Any

from assent.errors import AssentError
from assent.identity.model.access import Principal
from assent.runs.assistants.assistants import Assistants
from assent.threads.model.assistants import Assistant, Query

log = logging.getLogger(__name__)

Json = dict[str, Any]
PAGE = 100
CONTINUE = "continue_run"
"""No assistant can be called by this name: a paused run could not be continued."""

_HINTS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": True}
_MESSAGES = frozenset(
    f"{kind}Message{chunk}" for kind in ("AI", "Human", "Chat", "System", "Function", "Tool") for chunk in ("", "Chunk")
)
_PARTS = frozenset(
    {"ToolCall", "ToolCallChunk", "InvalidToolCall", "UsageMetadata", "InputTokenDetails", "OutputTokenDetails"}
)
_DEFINITION = "#/$defs/"

CONTINUE_TOOL: Json = {
    "name": CONTINUE,
    "title": "Continue a paused run",
    "description": (
        "Continues a run of another tool that paused. Give the thread_id of its result and, for each question that you "
        "may answer, an answer by the question's id. Without answers it waits for the run, or returns its present "
        "state: call it so after a person has decided a question that only a person may answer."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "thread_id": {"type": "string", "description": "The thread_id of the paused run."},
            "answers": {"type": "object", "description": "Question id → answer.", "additionalProperties": True},
        },
        "required": ["thread_id"],
    },
    "annotations": _HINTS,
}


def tool_name(name: str) -> str:
    """A name that MCP allows: letters, digits, `_`, `-` and `.`, at most 128 of them."""
    return re.sub(r"[^a-zA-Z0-9_\-.]", "", re.sub(r"\s+", "_", name.strip()))[:128]


async def listed(assistants: Assistants, caller: Principal, offset: int) -> tuple[list[Json], int | None]:
    """One page of tools, and the offset of the next. Assistants with a name that is taken, or that is a graph's, are
    left out, and so are those whose graph has no schema."""
    of_graphs = {tool_name(graph_id) for graph_id in assistants.graph_ids}
    page, total = await assistants.search(caller, Query(), limit=PAGE, offset=offset)
    tools, names = ([CONTINUE_TOOL] if offset == 0 else []), {CONTINUE}
    for assistant in page:
        name = tool_name(assistant.name)
        if not name or name in names or (name in of_graphs and not assistant.is_graphs_own):
            log.warning("list MCP tools skipped assistant=%s name=%r: taken or empty", assistant.id, name)
            continue
        names.add(name)
        if (schema := await _input_schema(assistants, caller, assistant)) is not None:
            tools.append(_tool(assistant, name, schema))
    following = offset + len(page)
    return tools, following if page and following < total else None


async def named(assistants: Assistants, caller: Principal, name: str) -> list[Assistant]:
    """The assistants of this tool: one, none, or several whose names become the same. A graph's own comes before those
    that callers have created."""
    matches = [assistant async for assistant in _all(assistants, caller) if tool_name(assistant.name) == name]
    return [assistant for assistant in matches if assistant.is_graphs_own] or matches


async def _all(assistants: Assistants, caller: Principal) -> AsyncIterator[Assistant]:
    offset = 0
    while True:
        page, total = await assistants.search(caller, Query(), limit=PAGE, offset=offset)
        for assistant in page:
            yield assistant
        offset += len(page)
        if not page or offset >= total:
            return


async def _input_schema(assistants: Assistants, caller: Principal, assistant: Assistant) -> Json | None:
    try:
        schema = (await assistants.schemas(caller, assistant.id)).get("input_schema")
    except AssentError as error:
        log.warning("list MCP tools skipped assistant=%s: %s", assistant.id, error.message)
        return None
    return None if schema is None else {"type": "object", **simplified(schema)}


def _tool(assistant: Assistant, name: str, schema: Json) -> Json:
    return {
        "name": name,
        "title": assistant.name,
        "description": assistant.description or f"Tool based on the {assistant.name} assistant",
        "inputSchema": schema,
        "annotations": _HINTS,
    }


def simplified(schema: Json) -> Json:
    """The schema with a list of messages as one text, which models write more reliably."""
    definitions = schema.get("$defs") or {}
    if not _MESSAGES & definitions.keys():
        return schema
    kept = {name: part for name, part in definitions.items() if name not in _MESSAGES | _PARTS}
    properties = {
        name: _text(name, part) if _lists_messages(part) else part
        for name, part in (schema.get("properties") or {}).items()
    }
    rest = {name: part for name, part in schema.items() if name != "$defs"}
    return {**rest, **({"$defs": kept} if kept else {}), "properties": properties}


def _text(name: str, part: Json) -> Json:
    return {
        "type": "string",
        "title": part.get("title", name),
        "description": "The user message to send to the agent.",
    }


def _lists_messages(part: Json) -> bool:
    items = part.get("items") or {}
    candidates = items.get("oneOf") or items.get("anyOf") or []
    references = (candidate.get("$ref", "") for candidate in candidates)
    return part.get("type") == "array" and any(text.removeprefix(_DEFINITION) in _MESSAGES for text in references)
