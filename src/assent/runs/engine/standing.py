"""Checks that an imported thread has the same next nodes and questions as at its source.

LangGraph only logs when a checkpoint refers to nodes that the graph does not have: a thread of another graph, or of one
with renamed nodes, would appear finished, without its questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, TASKS
from langgraph.pregel import Pregel

from assent.errors import BadRequest
from assent.runs.sources.source import Past

if TYPE_CHECKING:
    from langgraph.checkpoint.base import CheckpointTuple
    from langgraph.types import StateSnapshot

    from assent.runs.project.graphs import AnyPregel

_TRIGGERS = ("branch:", "join:")
_HINT = "import it with the graph that ran on it, as it was then: --graph NAME"


async def require_same(graph: AnyPregel, snapshot: StateSnapshot, past: Past) -> None:
    """`snapshot`: the imported state. Refuses a thread that would continue at other nodes than at its source."""
    if past.next is not None and sorted(past.next) != sorted(snapshot.next):
        wanted, actual = (", ".join(names) or "the end" for names in (past.next, snapshot.next))
        raise BadRequest(
            f"at its source the next node is {wanted}, and here it would be {actual}",
            hint="let it end at its source, or import it from the tables of its checkpointer",
        )
    heads = {_namespace(checkpoint): checkpoint for checkpoint in past.checkpoints}
    _require_nodes(graph, heads.get(""))
    _require_questions(snapshot, heads.get(""))
    current = tuple(f"{task.name}:{task.id}" for task in snapshot.tasks)
    inside = {ns: head for ns, head in heads.items() if ns.startswith(current)} if current else {}
    if inside:
        graphs = {ns: inner async for ns, inner in graph.aget_subgraphs(recurse=True)}
        for ns, head in inside.items():
            if isinstance(inner := graphs.get(_path(ns)), Pregel):  # not a remote graph
                _require_nodes(inner, head)


def _require_nodes(graph: AnyPregel, head: CheckpointTuple | None) -> None:
    """Requires the nodes that the checkpoint and its finished tasks start."""
    missing = sorted({node for node in _started(graph, head) if node not in graph.nodes}) if head else []
    if missing:
        raise BadRequest(f"it continues at {', '.join(missing)}, which the graph here does not have", hint=_HINT)


def _started(graph: AnyPregel, head: CheckpointTuple) -> Iterator[str]:
    written = [(channel, value) for _, channel, value in head.pending_writes or ()]
    for channel, value in (*head.checkpoint["channel_values"].items(), *written):
        if channel == TASKS:
            yield from (send.node for send in (value if isinstance(value, Sequence) else [value]))
        elif channel.startswith(_TRIGGERS) and channel not in graph.channels and _is_set(channel, value):
            yield channel.removeprefix("branch:to:")


def _is_set(channel: str, value: Any) -> bool:
    """Whether the channel triggers its node. An empty join is stored as well."""
    return channel.startswith("branch:") or bool(value[0] if isinstance(value, list | tuple) else value)


def _require_questions(snapshot: StateSnapshot, head: CheckpointTuple | None) -> None:
    """Requires the questions and failed tasks of the source. Writes of other tasks are ignored: they are functions that
    a node calls, and their node asks their questions."""
    written = (head.pending_writes if head else None) or []
    asked = {item.id for _, channel, value in written if channel == INTERRUPT for item in _listed(value)}
    here = {item.id for task in snapshot.tasks for item in task.interrupts}
    failed = {task for task, channel, _ in written if channel == ERROR}
    if asked - here or (failed and not failed & {task.id for task in snapshot.tasks}):
        lost = "asks" if asked - here else "failed at"
        raise BadRequest(f"it {lost} something at a node that the graph here does not have", hint=_HINT)


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _namespace(checkpoint: CheckpointTuple) -> str:
    return str(checkpoint.config["configurable"].get("checkpoint_ns") or "")


def _path(ns: str) -> str:
    """`outer:1f…|inner:2a…` is the graph `outer|inner`."""
    return "|".join(part.partition(":")[0] for part in ns.split("|") if not part.isdigit())
