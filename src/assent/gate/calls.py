"""Gates a call that is neither a tool nor a function: a node makes it, under the id the model gave it.

Such a call may pause for an interrupt of another node (a login, a form) and resume in another task of the graph. So
its own id in the thread identifies it, not the task: it resumes under its approval, and a call that already ran does
not run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any

from langgraph.errors import GraphInterrupt

from assent.gate.decorator import _GuardedTool
from assent.gate.keeper import current_grant
from assent.gate.passing import adrive, through
from assent.gate.places import Place, akeeper_for
from assent.gate.results import Stopped
from assent.gate.task import Task
from assent.kernel.canonical import Json

Passing = Callable[[], Awaitable[None]]
"""Passes one call, by `pass_call`."""


class _CallTask(Task):
    """A task named after the call it makes. Its interrupts keep the ids of the real task."""

    def named_after(self, call_id: str) -> None:
        self.ns = f"call:{call_id}"


class _Siblings:
    """The calls that are passed at once. `decided` is set once the gate has let through or stopped each of them."""

    def __init__(self, number: int) -> None:
        self.decided = asyncio.Event()
        self.asks = False
        self._undecided = number

    def decide(self) -> None:
        self._undecided -= 1
        if self._undecided == 0:
            self.decided.set()


class _Sibling:
    def __init__(self, siblings: _Siblings) -> None:
        self._siblings = siblings
        self._is_decided = False

    async def run(self, passing: Passing) -> None:
        token = _sibling.set(self)
        try:
            await passing()
        except GraphInterrupt:
            self._siblings.asks = True
            raise
        finally:
            self._decide()
            _sibling.reset(token)

    async def let_through(self) -> None:
        """While a person is asked about a sibling, a call without a grant is not made: nothing would record its result,
        and the node would make it again after the answer."""
        self._decide()
        if current_grant() is None:
            await self._siblings.decided.wait()
            if self._siblings.asks:
                raise Stopped

    def _decide(self) -> None:
        if not self._is_decided:
            self._is_decided = True
            self._siblings.decide()


_sibling: ContextVar[_Sibling | None] = ContextVar("sibling", default=None)


async def pass_at_once(passings: Sequence[Passing]) -> list[Exception]:
    """Passes several calls of one node at the same time, and waits for the end of all. The gate's questions about them
    are asked together; without any, returns the errors, in the order of the calls."""
    if not passings:
        return []
    task, siblings = _current(), _Siblings(len(passings))
    async with task.aturn():
        running = (_Sibling(siblings).run(passing) for passing in passings)
        ended = await asyncio.gather(*running, return_exceptions=True)
        task.ask_together([end for end in ended if isinstance(end, GraphInterrupt)])
    if lost := next((end for end in ended if end is not None and not isinstance(end, Exception)), None):
        raise lost
    return [end for end in ended if isinstance(end, Exception)]


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
        return await adrive(steps, keeper, _after_siblings(make))


def _after_siblings(make: Callable[[Json], Awaitable[Any]]) -> Callable[[Json], Awaitable[Any]]:
    sibling = _sibling.get()
    if sibling is None:
        return make

    async def made(args: Json) -> Any:
        await sibling.let_through()
        return await make(args)

    return made


def _current() -> _CallTask:
    task = _CallTask.current()
    assert isinstance(task, _CallTask)
    return task
