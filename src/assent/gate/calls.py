"""A call that is not a tool or function of its own before the gate: a node makes it, under the id the model gave it.

Such a call may have to stop for something that another node asks (a login, a form), and is made again by another task
of the graph. So it is known by its own id in the thread, not by the task: it goes on under the approval it had, and one
that was made already is not made again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.errors import GraphInterrupt
from langgraph.types import _interrupt_id

from assent.domain.canonical import Json
from assent.gate.decorator import _GuardedTool
from assent.gate.inbox import keeper_for
from assent.gate.keeper import Keeper
from assent.gate.passing import adrive, through
from assent.gate.task import Task


class Stopped(GraphInterrupt):
    """Raised by a call that has done nothing yet and cannot go on: its approval waits until it is made again."""


class _CallTask(Task):
    """A task that bears the name of the call it makes. What it asks, it asks under its own."""

    def __init__(self, configurable: dict[str, Any]) -> None:
        super().__init__(configurable)
        self._asks_in = self.ns

    def named_after(self, call_id: str) -> None:
        self.ns = f"call:{call_id}"

    @property
    def interrupt_ids(self) -> list[str]:
        return [_interrupt_id(self._asks_in, index) for index in range(len(self._scratchpad.resume) + 1)]

    @property
    def next_id(self) -> str:
        return _interrupt_id(self._asks_in, len(self._scratchpad.resume))


async def pass_call(
    name: str,
    args: Json,
    call_id: str,
    make: Callable[[Json], Awaitable[Any]],
    *,
    listed: bool | None = True,
    idempotent: bool = False,
    args_schema: Json = None,
    inbox: Keeper | None = None,
) -> Any:
    """Makes the call once it may be made, and returns what came of it, now or the first time.

    `listed` is the author's word, as in `ApprovalMiddleware`: True asks, False runs freely unless the policy asks.
    """
    task, keeper = _current(), keeper_for(inbox)
    async with task.aturn():
        guarded = _GuardedTool(name, call_id, idempotent, args_schema, args, task)
        guarded.listed = listed
        task.named_after(call_id)
        steps = through(task, keeper, guarded, args, call_id)
        return await adrive(steps, keeper, make)


def _current() -> _CallTask:
    task = _CallTask.current()
    assert isinstance(task, _CallTask)
    return task
