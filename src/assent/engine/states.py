"""LangGraph's snapshot of a state as clients read it: the ThreadState of the LangGraph API, and the open questions.

What leaves here is ready for `jsonable`. Configs are reduced to the address of a checkpoint, and whatever LangGraph
and we keep in them or in metadata for ourselves stays inside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from assent.domain.threads import Interrupts
from assent.engine import jsonable
from assent.errors import Invalid

if TYPE_CHECKING:
    from langgraph.types import Interrupt, PregelTask, StateSnapshot

Json = dict[str, Any]

FIELDS = (
    "values",
    "next",
    "tasks",
    "metadata",
    "created_at",
    "checkpoint",
    "parent_checkpoint",
    "interrupts",
    "checkpoint_id",
    "parent_checkpoint_id",
)
EMPTY: Json = dict.fromkeys(FIELDS) | {"values": {}, "next": [], "tasks": [], "interrupts": []}
"""The state of a thread that never ran."""

_ADDRESS = ("checkpoint_id", "thread_id", "checkpoint_ns", "checkpoint_map")


def interrupts_of(snapshot: StateSnapshot) -> Interrupts:
    """The questions of each task that asks, as plain JSON. A task that failed has had its answers: LangGraph keeps
    them, and would ignore others."""
    return {
        task.id: [jsonable.plain(_question(one)) for one in task.interrupts]
        for task in snapshot.tasks
        if task.interrupts and not task.error
    }


def state_of(snapshot: StateSnapshot) -> Json:
    """The ThreadState. Without a checkpoint there is nothing but empty values."""
    if snapshot.created_at is None:
        return EMPTY
    here, parent = address(snapshot.config), address(snapshot.parent_config)
    return {
        "values": snapshot.values,
        "next": list(snapshot.next),
        "tasks": [_task(task) for task in snapshot.tasks],
        "metadata": _metadata(snapshot),
        "created_at": snapshot.created_at,
        "checkpoint": here,
        "parent_checkpoint": parent,
        "interrupts": [_question(one) for one in snapshot.interrupts],
        "checkpoint_id": here and here.get("checkpoint_id"),
        "parent_checkpoint_id": parent and parent.get("checkpoint_id"),
    }


def address(config: Mapping[str, Any] | None) -> Json | None:
    """Which checkpoint a config names."""
    named = (config or {}).get("configurable") or {}
    return {name: named[name] for name in _ADDRESS if named.get(name) is not None} or None


def selection(wanted: Collection[str] | None) -> Callable[[Json], Json]:
    """Takes the wanted fields out of a state; `values.<key>` is one key of the values."""
    if not wanted:
        return lambda state: state
    keys = {name.removeprefix("values.") for name in wanted if name.startswith("values.")}
    fields = [name for name in wanted if not name.startswith("values.")]
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown:
        raise Invalid(f"select: unknown field {unknown[0]!r}", hint=f"one of: {', '.join(FIELDS)}, values.<key>")

    def select(state: Json) -> Json:
        taken = {name: state[name] for name in fields}
        return taken if "values" in fields or not keys else taken | {"values": _some(state["values"], keys)}

    return select


def _some(values: Any, keys: Collection[str]) -> Any:
    return {name: value for name, value in values.items() if name in keys} if isinstance(values, Mapping) else values


def _question(interrupt: Interrupt[Any]) -> Json:
    """`response_schema` only where there is one: clients whose Interrupt lacks the field would break on it."""
    schema = interrupt.response_schema
    asked = {"id": interrupt.id, "value": interrupt.value}
    return asked | {"response_schema": schema} if isinstance(schema, Mapping) else asked


def _task(task: PregelTask) -> Json:
    """A task that is a subgraph shows where its checkpoint is, or its whole state where that was asked for."""
    from langgraph.types import StateSnapshot

    nested = task.state
    return {
        "id": task.id,
        "name": task.name,
        "path": list(task.path),
        "error": _error(task.error),
        "interrupts": [_question(one) for one in task.interrupts],
        "checkpoint": None if isinstance(nested, StateSnapshot) else address(nested),
        "state": state_of(nested) if isinstance(nested, StateSnapshot) else None,
        "result": task.result,
    }


def _error(error: Any) -> str | None:
    """Stored errors come back as text already."""
    return error if error is None or isinstance(error, str) else repr(error)


def _metadata(snapshot: StateSnapshot) -> Json:
    kept = {name: value for name, value in (snapshot.metadata or {}).items() if not name.startswith("__")}
    return kept | {"thread_id": snapshot.config["configurable"]["thread_id"]}
