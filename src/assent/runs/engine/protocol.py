"""The stream of a run for clients of the event protocol: LangGraph's own protocol events, and the graph's transformers.

Models then stream content blocks instead of message chunks, subgraphs tell how they fare, and the transformers that an
author compiled into the graph send on channels of their own.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from assent.runs.project.failures import Failures
from assent.runs.upstream import INTERRUPT

if TYPE_CHECKING:
    from assent.runs.project.graphs import AnyPregel

STREAM_MODES = ("values", "updates", "messages", "tools", "lifecycle", "custom", "tasks", "checkpoints")
"""The modes of a run that a command of the protocol starts, as LangGraph's server stores them."""

MODES = frozenset({"tools", "lifecycle"})
"""Only the protocol has these modes; a request for a run cannot name them."""

_MORE = ("updates", "tools", "custom", "checkpoints")
"""LangGraph streams values, messages and the lifecycle of subgraphs by itself."""

Chunk = tuple[tuple[str, ...], str, Any]


async def chunks(graph: AnyPregel, input: Any, config: Any, options: Mapping[str, Any]) -> AsyncIterator[Chunk]:
    from langgraph.stream import StreamTransformer

    class More(StreamTransformer):
        """Asks the graph for further modes and passes everything on."""

        required_stream_modes = _MORE

        def init(self) -> dict[str, Any]:
            return {}

        def process(self, event: Any) -> bool:
            return True

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*v3 streaming protocol")  # it is LangGraph's, and in beta
        stream: Any = await graph.astream_events(input, config, version="v3", transformers=[More], **options)
    async with stream:
        async for event in stream:
            for chunk in _chunks_of(event["method"], event["params"]):
                yield chunk


def _chunks_of(method: str, params: Mapping[str, Any]) -> list[Chunk]:
    namespace, data = tuple(params["namespace"]), params["data"]
    if method == "messages":
        part = data[0] if isinstance(data, tuple) else data
        return [(namespace, method, part)] if isinstance(part, dict) and "event" in part else []
    if method == "checkpoints":
        return [(namespace, method, _checkpoint(data))]
    asked = list(params.get("interrupts") or ()) if method == "values" else []
    if not asked:
        return [(namespace, method, data)]
    if isinstance(data, dict):
        return [(namespace, method, {**data, INTERRUPT: asked})]
    return [(namespace, method, data), (namespace, method, {INTERRUPT: asked})]


def _checkpoint(data: Mapping[str, Any]) -> dict[str, Any]:
    """The address of the checkpoint. The state is in the values."""
    config, parent = (_checkpoint_id(data.get(name)) for name in ("config", "parent_config"))
    about = data.get("metadata") or {}
    named = {"id": config, "parent_id": parent, "step": about.get("step"), "source": about.get("source")}
    return {name: value for name, value in named.items() if value is not None}


def _checkpoint_id(config: Any) -> str | None:
    return ((config or {}).get("configurable") or {}).get("checkpoint_id")


def without_texts(method: str, data: Any, failures: Failures) -> Any:
    """Replaces error texts of tools, models and subgraphs by those for callers."""
    if not isinstance(data, dict):
        return data
    if method == "lifecycle" and data.get("error") is not None:
        return {**data, "error": failures.of_task(data["error"])}
    failed = (method, data.get("event")) in (("tools", "tool-error"), ("messages", "error"))
    if failed and data.get("message") is not None:
        return {**data, "message": failures.of_task(data["message"])}
    return data
