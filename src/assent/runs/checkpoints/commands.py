"""LangGraph's commands: built from the JSON of the LangGraph API, and applied to checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import filterfalse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph.checkpoint.base import CheckpointTuple
    from langgraph.types import Command

    from assent.runs.project.graphs import AnyPregel, Saver


def command_of(command: Mapping[str, Any]) -> Command[Any]:
    """`goto` is the name of a node, `{"node", "input"}`, or a list of these; `update` is an object, or a list of
    key-value pairs, in which keys may repeat."""
    from langgraph.types import Command, Send

    goto = command.get("goto") or ()
    targets = [goto] if isinstance(goto, str | Mapping) else goto
    sends = [target if isinstance(target, str) else Send(target["node"], target.get("input")) for target in targets]
    return Command(resume=command.get("resume"), update=_update(command.get("update")), goto=sends)


def applied(graph: AnyPregel, saver: Saver, saved: CheckpointTuple) -> CheckpointTuple:
    """The checkpoint with what commands have written to it, as a run of the graph reads it. LangGraph keeps that beside
    the checkpoint until the step has ended, and shows no task that it starts: neither what the task asks, nor that
    it has stopped."""
    from assent.runs.checkpoints.upstream import (
        INPUT,
        NULL_TASK_ID,
        PregelTaskWrites,
        apply_writes,
        channels_from_checkpoint,
    )

    def is_commanded(write: tuple[str, str, Any]) -> bool:
        return write[0] == NULL_TASK_ID and _is_stored(graph, write[1])

    writes, checkpoint = saved.pending_writes or [], saved.checkpoint
    commanded = [(channel, value) for _, channel, value in filter(is_commanded, writes)]
    if not commanded:
        return saved
    channels, _ = channels_from_checkpoint({name: graph.channels[name] for name, _ in commanded}, checkpoint)
    written = PregelTaskWrites((), INPUT, commanded, [])
    apply_writes(checkpoint, channels, [written], saver.get_next_version, graph.trigger_to_nodes)
    values = {name: channel.checkpoint() for name, channel in channels.items() if channel.is_available()}
    checkpoint = {**checkpoint, "channel_values": {**checkpoint["channel_values"], **values}}
    return saved._replace(checkpoint=checkpoint, pending_writes=[*filterfalse(is_commanded, writes)])


def _is_stored(graph: AnyPregel, name: str) -> bool:
    """Whether checkpoints hold the channel's value. Delta channels are rebuilt from writes, untracked ones per run."""
    from langgraph.channels import BaseChannel, DeltaChannel, UntrackedValue

    channel = graph.channels.get(name)
    return isinstance(channel, BaseChannel) and not isinstance(channel, DeltaChannel | UntrackedValue)


def _update(update: Any) -> Any:
    """Converts pairs to tuples, by which LangGraph recognises them."""
    return [tuple(pair) for pair in update] if isinstance(update, list) and all(map(_is_pair, update)) else update


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
