"""Namespaces of subgraphs: their tasks, and whether they have ended, read from checkpoints without the graph.

LangGraph names the graph that a task calls `node:task`, with a number for each further one. A graph with its own
memory (`checkpointer=True`) is named after its node alone, in all tasks of that node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assent.runs.upstream import TASKS

_STARTING = ("branch:", "join:", TASKS, "__start__")
"""Prefixes of the names of channels that start a node of a graph."""


def is_of(ns: str, node: str, task: str) -> bool:
    """Whether the task has called, or may continue, this graph or one that contains it."""
    return ns.split("|")[0] in (f"{node}:{task}", node)


def is_hidden(graph: Any, ns: str) -> bool:
    """Whether the graph cannot be determined. It can if each node on the path is itself a graph."""
    from langgraph.pregel import Pregel

    for part in ns.split("|"):
        node = graph.nodes.get(part.partition(":")[0])
        graph = getattr(node, "bound", None)
        if not isinstance(graph, Pregel):
            return True
    return False


def has_ended(checkpoint: Mapping[str, Any]) -> bool:
    """Whether no node of the graph is about to begin; False if that cannot be determined."""
    if not any(name.startswith("branch:") for name in checkpoint["channel_versions"]):
        return False
    left = {name: value for name, value in checkpoint["channel_values"].items() if name.startswith(_STARTING)}
    return not any(value or not name.startswith(("join:", TASKS)) for name, value in left.items())
