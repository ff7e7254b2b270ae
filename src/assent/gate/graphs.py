"""Whether a graph has a gate in it, so that a server can treat it so before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assent.domain.grants import GATE_CHANNEL

MARK = "__assent_gated__"
"""Stands on what `@gated` has made."""


def is_gated(graph: Any) -> bool:
    """By the middleware's channel, or by a gated node or tool. A gated function that a node calls is not seen from
    outside; its questions carry the gate's mark all the same."""
    if GATE_CHANNEL in graph.channels:
        return True
    return any(
        getattr(one, MARK, False) or _is_gated_graph(one) for node in graph.nodes.values() for one in _parts(node)
    )


def _is_gated_graph(part: Any) -> bool:
    return hasattr(part, "channels") and hasattr(part, "nodes") and is_gated(part)


def _parts(node: Any) -> Iterator[Any]:
    bound = node.bound
    yield from (bound, getattr(bound, "func", None), getattr(bound, "afunc", None))
    for tool in getattr(bound, "tools_by_name", {}).values():
        yield from (tool, getattr(tool, "func", None), getattr(tool, "coroutine", None))
    yield from node.subgraphs
