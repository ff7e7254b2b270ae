"""Outcomes of attempts, derived from a graph's state, and the context passed to a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assent.kernel import jsonable
from assent.runs.engine import states
from assent.threads.model.runs import Outcome, RunStatus

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from assent.runs.project.graphs import AnyPregel


def output_of(graph: AnyPregel) -> frozenset[str] | None:
    """The channels of the graph's output schema; None if the state has no others."""
    output = graph.output_channels
    if isinstance(output, str) or isinstance(graph.stream_channels_asis, str):
        return None
    return frozenset(output) if set(graph.stream_channels_asis) - set(output) else None


def of_state(snapshot: StateSnapshot, status: RunStatus, error: dict[str, Any] | None = None) -> Outcome:
    """The outcome of a state. A thread is finished if it has no next nodes and no tasks."""
    following = tuple(snapshot.next) or tuple(task.name for task in snapshot.tasks)
    return Outcome(status, jsonable.plain(snapshot.values), states.interrupts_of(snapshot), following, error)


def context_for(graph: AnyPregel, context: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The part of the context that the graph's schema names; None without a schema. LangGraph fills an empty context
    with the schema's defaults."""
    if graph.context_schema is None:
        return None
    if not context:
        return {}
    properties = (graph.get_context_jsonschema() or {}).get("properties", {})
    return {name: value for name, value in context.items() if name in properties}
