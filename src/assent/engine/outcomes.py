"""How a graph's state says an attempt ended, and which part of a caller's context a graph takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assent.domain.runs import Outcome, RunStatus
from assent.engine import jsonable, states

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from assent.engine.graphs import AnyPregel


def of_state(snapshot: StateSnapshot, status: RunStatus, error: dict[str, Any] | None = None) -> Outcome:
    """Finished means that nothing is next and no task is left."""
    following = tuple(snapshot.next) or tuple(task.name for task in snapshot.tasks)
    return Outcome(status, jsonable.plain(snapshot.values), states.interrupts_of(snapshot), following, error)


def context_for(graph: AnyPregel, context: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What the graph's context schema names; a graph without one takes none."""
    schema = graph.get_context_jsonschema() if context else None
    if not schema or not context:
        return None
    return {name: value for name, value in context.items() if name in schema.get("properties", {})}
