"""Converts LangGraph's snapshots to the ThreadState of the LangGraph API, and to open questions.

The results are ready for `jsonable`. Configs are reduced to checkpoint addresses, and internal keys of LangGraph and
Assent are removed from metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from assent.errors import Invalid
from assent.kernel import jsonable
from assent.runs.project.failures import SHOWN, Failures
from assent.threads.model.threads import Interrupts

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
    """The questions of each asking task, as plain JSON. Omits failed tasks: LangGraph keeps their answers and ignores
    new ones."""
    return {
        task.id: [jsonable.plain(_question(interrupt)) for interrupt in task.interrupts]
        for task in snapshot.tasks
        if task.interrupts and not task.error
    }


def state_of(snapshot: StateSnapshot, failures: Failures = SHOWN) -> Json:
    """The ThreadState; empty without a checkpoint."""
    if snapshot.created_at is None:
        return EMPTY
    here, parent = address(snapshot.config), address(snapshot.parent_config)
    return {
        "values": snapshot.values,
        "next": list(snapshot.next),
        "tasks": [_task(task, failures) for task in snapshot.tasks],
        "metadata": _metadata(snapshot),
        "created_at": snapshot.created_at,
        "checkpoint": here,
        "parent_checkpoint": parent,
        "interrupts": [_question(interrupt) for interrupt in snapshot.interrupts],
        "checkpoint_id": here and here.get("checkpoint_id"),
        "parent_checkpoint_id": parent and parent.get("checkpoint_id"),
    }


def address(config: Mapping[str, Any] | None) -> Json | None:
    """The address of the checkpoint that a config names."""
    named = (config or {}).get("configurable") or {}
    return {name: named[name] for name in _ADDRESS if named.get(name) is not None} or None


def selection(wanted: Collection[str] | None) -> Callable[[Json], Json]:
    """Selects the wanted fields of a state; `values.<key>` is one key of the values."""
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
    """Omits an empty `response_schema`: clients whose Interrupt lacks the field would fail."""
    schema = interrupt.response_schema
    asked = {"id": interrupt.id, "value": interrupt.value}
    return asked | {"response_schema": schema} if isinstance(schema, Mapping) else asked


def _task(task: PregelTask, failures: Failures) -> Json:
    """A task of a subgraph has its checkpoint address, or its whole state if requested."""
    from langgraph.types import StateSnapshot

    nested = task.state
    return {
        "id": task.id,
        "name": task.name,
        "path": list(task.path),
        "error": failures.of_task(task.error),
        "interrupts": [_question(interrupt) for interrupt in task.interrupts],
        "checkpoint": None if isinstance(nested, StateSnapshot) else address(nested),
        "state": state_of(nested, failures) if isinstance(nested, StateSnapshot) else None,
        "result": task.result,
    }


def _metadata(snapshot: StateSnapshot) -> Json:
    public = {name: value for name, value in (snapshot.metadata or {}).items() if not name.startswith("__")}
    return public | {"thread_id": snapshot.config["configurable"]["thread_id"]}
