"""Detects whether a graph has a gate, so that a server can treat it as gated before the first question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assent.gate.questions import args_schema
from assent.review.model.grants import GATE_CHANNEL
from assent.review.model.secrets import Path, marked_in

MARK = "__assent_gated__"
"""The attribute that `@gated` sets on its results."""


def is_gated(graph: Any) -> bool:
    """Checks the middleware's channel and every node and tool. A gated function that a node calls is not visible from
    outside; its questions still have the gate's mark."""
    if GATE_CHANNEL in graph.channels:
        return True
    return any(
        getattr(part, MARK, False) or _is_gated_graph(part) for node in graph.nodes.values() for part in _parts(node)
    )


def marks_of(graph: Any) -> dict[str, frozenset[Path]]:
    """The paths that the schemas of the graph's tools mark as secret, by tool name."""
    marks: dict[str, frozenset[Path]] = {}
    for node in graph.nodes.values():
        for name, tool in getattr(node.bound, "tools_by_name", {}).items():
            marks[name] = marks.get(name, frozenset()) | marked_in(args_schema(tool))
        for inner in node.subgraphs:
            marks |= marks_of(inner) if hasattr(inner, "nodes") else {}
    return {name: paths for name, paths in marks.items() if paths}


def _is_gated_graph(part: Any) -> bool:
    return hasattr(part, "channels") and hasattr(part, "nodes") and is_gated(part)


def _parts(node: Any) -> Iterator[Any]:
    bound = node.bound
    yield from (bound, getattr(bound, "func", None), getattr(bound, "afunc", None))
    for tool in getattr(bound, "tools_by_name", {}).values():
        yield from (tool, getattr(tool, "func", None), getattr(tool, "coroutine", None))
    yield from node.subgraphs
