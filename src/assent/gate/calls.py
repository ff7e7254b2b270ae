"""Gates a call that is neither a tool nor a function: a node makes it, under the id the model gave it.

Such a call may pause for an interrupt of another node (a login, a form) and resume in another task of the graph. So
its own id in the thread identifies it, not the task: it resumes under its approval, and a call that already ran does
not run again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from assent.gate.decorator import _GuardedTool
from assent.gate.passing import adrive, through
from assent.gate.places import Place, akeeper_for
from assent.gate.task import Task
from assent.kernel.canonical import Json


class _CallTask(Task):
    """A task named after the call it makes. Its interrupts keep the ids of the real task."""

    def named_after(self, call_id: str) -> None:
        self.ns = f"call:{call_id}"


async def pass_call(
    name: str,
    args: Json,
    call_id: str,
    make: Callable[[Json], Awaitable[Any]],
    *,
    listed: bool | None = True,
    idempotent: bool = False,
    args_schema: Json = None,
    inbox: Place | None = None,
) -> Any:
    """Makes the call once it is approved, and returns its result, new or recorded.

    `listed` is the author's setting, as in `ApprovalMiddleware`: True asks, False runs freely unless the policy asks.
    """
    task, keeper = _current(), await akeeper_for(inbox)
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
