"""Reads the state of a thread, with the tasks that a command has started, even after failed reducers.

A task's output is stored before the graph's reducers apply it. If a reducer fails (two values for one key, a message of
an unknown role, an author's own error), LangGraph raises on every read of the state. The state is then read without
that output, as it was when the last step began.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

from assent.runs.engine.attempts import is_lasting

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from assent.runs.checkpoints.saver import StoreSaver
    from assent.runs.project.graphs import AnyPregel

_STEPS_BACK = 3


async def state_of(graph: AnyPregel, config: Any, *, subgraphs: bool = False) -> StateSnapshot:
    """The latest state, or the one that the config names. Raises LangGraph's errors."""
    return await with_commands(graph).aget_state(config, subgraphs=subgraphs)


async def read_state(graph: AnyPregel, config: Any, *, subgraphs: bool = False) -> StateSnapshot:
    """The latest state, or the one that the config names, if necessary without the outputs of its last step. Raises
    LangGraph's error if that cannot be read either."""
    try:
        return await state_of(graph, config, subgraphs=subgraphs)
    except BaseException as error:
        snapshot = await _attempted(_without_outputs(graph), config, subgraphs) if is_lasting(error) else None
        if snapshot is None:
            raise
        return snapshot


async def read_back(graph: AnyPregel, config: Any) -> StateSnapshot | None:
    """The latest state, or else the values of the last readable step, at most a few steps back."""
    snapshot = await _attempted(graph, config) or await _attempted(_without_outputs(graph), config)
    steps = 0
    while snapshot is None and steps < _STEPS_BACK and (config := await _parent(graph, config)):
        before = await _attempted(graph, config)
        snapshot = before and before._replace(next=(), tasks=(), interrupts=())
        steps += 1
    return snapshot


async def _attempted(graph: AnyPregel, config: Any, subgraphs: bool = False) -> StateSnapshot | None:
    """The state; None if it is unreadable."""
    try:
        return await state_of(graph, config, subgraphs=subgraphs)
    except BaseException as error:
        if not is_lasting(error):
            raise
        return None


async def _parent(graph: AnyPregel, config: Any) -> Any:
    """The config of the parent checkpoint; None if there is none."""
    stored = await _saver(_without_outputs(graph)).aget_tuple(config)
    if stored is None or stored.parent_config is None:
        return None
    return {**config, "configurable": {**config["configurable"], **stored.parent_config["configurable"]}}


def with_commands(graph: AnyPregel) -> AnyPregel:
    """The graph, for reading and editing its states."""
    view = copy.copy(graph)
    view.checkpointer = _saver(graph).with_commands(graph)
    return view


def _without_outputs(graph: AnyPregel) -> AnyPregel:
    view = copy.copy(graph)
    view.checkpointer = _saver(graph).without_outputs()
    return view


def _saver(graph: AnyPregel) -> StoreSaver:
    return cast("StoreSaver", graph.checkpointer)
