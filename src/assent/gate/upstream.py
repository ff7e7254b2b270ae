"""The private parts of LangGraph that the gate uses: what its own `interrupt` and `ToolNode` use.

No other module of the gate imports them. `tests/unit/test_upstream.py` names each one and fails when it moves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from langchain_core.tools import BaseTool
from langgraph._internal._constants import (
    CONF,
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_CHECKPOINTER,
    CONFIG_KEY_NODE_ERROR,
    CONFIG_KEY_RESUME_MAP,
    CONFIG_KEY_RUNTIME,
    CONFIG_KEY_SCRATCHPAD,
    CONFIG_KEY_SEND,
    CONFIG_KEY_THREAD_ID,
    NS_SEP,
    RESUME,
)
from langgraph.types import _interrupt_id

__all__ = [
    "CONF",
    "CONFIG_KEY_CHECKPOINTER",
    "CONFIG_KEY_CHECKPOINT_NS",
    "CONFIG_KEY_NODE_ERROR",
    "CONFIG_KEY_RESUME_MAP",
    "CONFIG_KEY_RUNTIME",
    "CONFIG_KEY_SCRATCHPAD",
    "CONFIG_KEY_SEND",
    "CONFIG_KEY_THREAD_ID",
    "NS_SEP",
    "RESUME",
    "Scratchpad",
    "injected_arguments",
    "interrupt_id",
    "skip_answers",
]


class Scratchpad(Protocol):
    """LangGraph's record of one execution of a task."""

    resume: list[Any]
    """The answers that the task was given so far."""

    def get_null_resume(self, consume: bool, /) -> Any:
        """An answer that names no question."""

    def interrupt_counter(self) -> int:
        """Counts one question of the task."""


def interrupt_id(ns: str, answered: int) -> str:
    """The id of the question that a task asks after this many answers."""
    return _interrupt_id(ns, answered)


def skip_answers(scratchpad: Scratchpad, hidden: Callable[[int], bool]) -> None:
    """Lets `interrupt` pass over the answers at hidden positions. The scratchpad is frozen, but belongs to one task."""
    count = scratchpad.interrupt_counter

    def next_position() -> int:
        while hidden(position := count()):
            pass
        return position

    object.__setattr__(scratchpad, "interrupt_counter", next_position)


def injected_arguments(tool: BaseTool) -> frozenset[str]:
    """The arguments that a ToolNode sets by itself."""
    from langgraph.prebuilt.tool_node import _get_all_injected_args  # slow to import, and only agents with tools use it

    known = _get_all_injected_args(tool)
    named = {*known.all_injected_keys, *known.state, known.store, known.runtime}
    return frozenset(name for name in named if name)
