"""Restores checkpoints from the states that a LangGraph server returns.

The API returns values, tasks and questions, but not the checkpoint. The next nodes are restored by setting the channels
that trigger them. A task's id is derived from the checkpoint's id, its step and its node: with the same ids and steps,
every task and question keeps its id. Three things are not exported: the arguments of sends, earlier answers of a node
that asks again, and checkpoints of graphs that a node calls. If one of them is missing, the question is omitted, and
the node asks it again when the thread continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AnyMessage
from langgraph.channels import EphemeralValue, NamedBarrierValue, UntrackedValue
from langgraph.channels.named_barrier_value import NamedBarrierValueAfterFinish
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT
from langgraph.graph import message
from langgraph.types import Interrupt
from pydantic import PydanticUserError, TypeAdapter, ValidationError

from assent.kernel import jsonable
from assent.runs.sources.source import Past
from assent.runs.upstream import PUSH

if TYPE_CHECKING:
    from assent.runs.project.graphs import AnyPregel

Json = dict[str, Any]

_VERSION = 4
"""The version of the checkpoint format. Task ids are stable from 2 on."""
_START = "__start__"
_PREVIOUS = "__previous__"
_JOINS = (NamedBarrierValue, NamedBarrierValueAfterFinish)
_NOT_KEPT = ("langgraph_auth_", "langgraph_request_id", "__")


def restored(graph: AnyPregel, states: Sequence[Json]) -> Past:
    """The checkpoints of one thread's states, oldest first."""
    by_id = {_id(state): state for state in states}
    joins: dict[str, dict[str, set[str]]] = {}
    made = []
    for state in states:
        parent = by_id.get(str(state.get("parent_checkpoint_id")))
        joins[_id(state)] = _joined(graph, joins.get(_id(parent), {}) if parent else {}, parent)
        made.append(_restored(graph, state, joins[_id(state)]))
    head = states[-1] if states else None
    if head is None:
        return Past()
    sent = any(_is_sent(task) for task in head["tasks"])
    ran = by_id.get(str(head.get("parent_checkpoint_id")), {"tasks": []})["tasks"]
    resend = tuple(dict.fromkeys(task["name"] for task in ran)) if sent else ()
    return Past(made, _notes(graph, head), resend, next=tuple(head["next"]))


def _restored(graph: AnyPregel, state: Json, joins: Mapping[str, set[str]]) -> CheckpointTuple:
    thread, parent = state["checkpoint"]["thread_id"], state.get("parent_checkpoint_id")
    channels = _channels(graph, state, joins)
    version = max(int(state["metadata"].get("step", 0)) + 2, 1)
    checkpoint = Checkpoint(
        v=_VERSION,
        id=_id(state),
        ts=state["created_at"],
        channel_values=channels,
        channel_versions=dict.fromkeys(channels, version),
        versions_seen={},
        updated_channels=None,
    )
    metadata = {k: v for k, v in state["metadata"].items() if not k.startswith(_NOT_KEPT) and k != "user_id"}
    writes = [write for task in state["tasks"] for write in _writes(task)]
    return CheckpointTuple(
        _config(thread, _id(state)),
        checkpoint,
        CheckpointMetadata(**metadata),  # type: ignore[typeddict-item]
        _config(thread, str(parent)) if parent else None,
        writes,
    )


def _channels(graph: AnyPregel, state: Json, joins: Mapping[str, set[str]]) -> Json:
    """The channels of the state, and those that start the next nodes."""
    shown = _shown(graph, state)
    values = {name: _typed(graph.channels[name], value) for name, value in shown.items() if name in graph.channels}
    waiting = {name: set(seen) for name, seen in joins.items() if seen}
    triggers = {name: value for task in state["tasks"] if not _is_sent(task) for name, value in _trigger(graph, task)}
    return {**values, **waiting, **triggers}


def _shown(graph: AnyPregel, state: Json) -> Json:
    """The values by channel. A graph with a single-channel state returns it without its name; the result of a function
    is also the previous result of its next call."""
    whole = graph.stream_channels_asis
    if not isinstance(whole, str):
        return dict(state["values"] or {})
    again = {_PREVIOUS: state["values"]} if _PREVIOUS in graph.channels else {}
    return {whole: state["values"], **again} if state["values"] is not None else {}


def _trigger(graph: AnyPregel, task: Json) -> list[tuple[str, Any]]:
    """The channel that starts a task; empty for a completed join, which is restored separately."""
    if task["name"] == _START:
        return [(_START, task["result"])] if task.get("result") is not None else []
    node = graph.nodes.get(task["name"])
    named = [name for name in (node.triggers if node else ()) if isinstance(graph.channels.get(name), EphemeralValue)]
    joined = any(isinstance(graph.channels.get(name), _JOINS) for name in (node.triggers if node else ()))
    return [] if joined and len(named) != 1 else [(name, None) for name in named if name != _START]


def _joined(graph: AnyPregel, before: Mapping[str, set[str]], parent: Json | None) -> dict[str, set[str]]:
    """The nodes that have arrived, by join: those of the step before, and earlier ones. A complete join has started its
    node and is reset."""
    ran = {task["name"] for task in parent["tasks"]} if parent else set()
    joins = {}
    for name, channel in graph.channels.items():
        if isinstance(channel, _JOINS):
            seen = before.get(name, set())
            joins[name] = (set() if seen == channel.names else seen) | (ran & channel.names)
    return joins


def _writes(task: Json) -> list[tuple[str, str, Any]]:
    """The writes of the task: its error, or its question if an answer would reach exactly that question."""
    if task.get("error"):
        return [(task["id"], ERROR, task["error"])]
    return [(task["id"], INTERRUPT, [_question(asked) for asked in task["interrupts"]])] if _is_exact(task) else []


def _question(asked: Json) -> Interrupt[Any]:
    return Interrupt(value=asked["value"], id=asked["id"], response_schema=asked.get("response_schema"))


def _is_exact(task: Json) -> bool:
    """Whether the task asks its first question, in the root graph."""
    first = Interrupt.from_ns(None, f"{task['name']}:{task['id']}").id
    return not _is_sent(task) and [asked.get("id") for asked in task["interrupts"]] == [first]


def _notes(graph: AnyPregel, head: Json) -> tuple[str, ...]:
    """Remarks for the report on a thread that has not ended."""
    again = [task["name"] for task in head["tasks"] if task["interrupts"] and not _is_exact(task)]
    sent = [task["name"] for task in head["tasks"] if _is_sent(task) and not task["interrupts"]]
    done = [task["name"] for task in head["tasks"] if task.get("result") is not None and task["name"] != _START]
    hidden = sorted(_hidden(graph)) if head["next"] else []
    unknown = sorted(_shown(graph, head).keys() - graph.channels.keys())
    remarks = {
        "the API does not export the input and earlier answers of {}: it runs and asks again": again,
        "the API does not export the arguments sent to {}: they are sent again": sent,
        "the API does not export the output of {}, which has finished while others wait: it runs again": done,
        "the API does not export the private state {}: it is empty": hidden,
        "the state of the graph here has no {}: it is omitted": unknown,
    }
    return tuple(text.format(", ".join(dict.fromkeys(names))) for text, names in remarks.items() if names)


def _hidden(graph: AnyPregel) -> set[str]:
    """Channels with state that the API does not export."""
    shown = graph.stream_channels_asis
    named = {shown} if isinstance(shown, str) else set(shown)
    aside = (EphemeralValue, UntrackedValue, *_JOINS)
    stored = {name for name, channel in graph.channels.items() if not isinstance(channel, aside)}
    return {name for name in stored - named if not name.startswith("__")}


def _typed(channel: Any, value: Any) -> Any:
    """The value in the graph's types: messages, models and data classes instead of JSON. Values that would not convert
    back to the same JSON stay unchanged."""
    messages = _takes_messages(channel)
    adapt = _adapter(list[AnyMessage] if messages else channel.ValueType)
    if adapt is None:
        return value
    try:
        made = adapt(value)
    except (ValidationError, TypeError, ValueError):
        return value
    return made if messages or jsonable.plain(made) == value else value


def _takes_messages(channel: Any) -> bool:
    """Whether the reducer is `add_messages`, with or without a format."""
    reducer = getattr(channel, "operator", None) or getattr(channel, "reducer", None)
    module: str | None = getattr(getattr(reducer, "func", reducer), "__module__", None)
    return module == message.__name__


@lru_cache(maxsize=256)
def _adapter(kind: Any) -> Callable[[Any], Any] | None:
    try:
        return TypeAdapter(kind).validate_python
    except (PydanticUserError, TypeError, NameError):  # not supported by pydantic
        return None


def _is_sent(task: Json) -> bool:
    return bool(task.get("path")) and task["path"][0] == PUSH


def _id(state: Json) -> str:
    return str(state["checkpoint"]["checkpoint_id"])


def _config(thread_id: str, checkpoint_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}}
