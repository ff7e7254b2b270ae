"""The task of a graph in which a gated call is made: where it is, what it has been told so far, and how it asks.

LangGraph hands a task its answers by position, in the order in which it happens to ask. That is no order to rely on:
calls of one ToolNode run at once, and whether the gate still has to ask depends on grants, not on the graph. So answers
are taken by the question they were given to, which the keeper knows, and gated calls of one task take turns. Of
LangGraph's insides only what its own `interrupt` uses is used here.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from langgraph._internal._constants import (
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_CHECKPOINTER,
    CONFIG_KEY_SCRATCHPAD,
    CONFIG_KEY_SEND,
    CONFIG_KEY_THREAD_ID,
    RESUME,
)
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt, _interrupt_id

from assent.domain.canonical import Json

_POLL_SECONDS = 0.005


class NotInGraph(RuntimeError):
    """A gated call was made where nobody can be asked: outside a graph, or in one that keeps no state."""


@dataclass(slots=True, eq=False)
class _Turns:
    """What the gated calls of one execution of a task share."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: GraphInterrupt | None = None
    made: Counter[str] = field(default_factory=Counter)


_turns: WeakKeyDictionary[Callable[..., Any], _Turns] = WeakKeyDictionary()
_turns_lock = threading.Lock()
_alive: set[Task] = set()
_inside: ContextVar[tuple[_Turns, ...]] = ContextVar("inside", default=())


class Task:
    def __init__(self, configurable: dict[str, Any]) -> None:
        self._scratchpad = configurable[CONFIG_KEY_SCRATCHPAD]
        self._send = configurable[CONFIG_KEY_SEND]
        self.thread_id = str(configurable[CONFIG_KEY_THREAD_ID])
        self.ns = str(configurable[CONFIG_KEY_CHECKPOINT_NS])
        self.graph_id = str(configurable.get("graph_id") or "")
        with _turns_lock:  # the scratchpad itself takes no weak reference; this function of it lives as long
            self._turns = _turns.setdefault(self._scratchpad.get_null_resume, _Turns())

    @classmethod
    def current(cls) -> Task:
        try:
            configurable = get_config().get("configurable", {})
        except RuntimeError:
            raise NotInGraph("a gated call can only be made inside a graph: there is nobody to ask") from None
        if CONFIG_KEY_SCRATCHPAD not in configurable:
            raise NotInGraph("a gated call can only be made inside a node of a graph")
        if not configurable.get(CONFIG_KEY_CHECKPOINTER) or CONFIG_KEY_THREAD_ID not in configurable:
            raise NotInGraph(
                "a gated call has to wait for a person: compile the graph with a checkpointer, and give a thread_id"
            )
        return cls(configurable)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One gated call after another. A call inside a gated call is part of its turn."""
        if self._turns in _inside.get():
            yield
            return
        if not self._turns.lock.acquire(blocking=not _on_a_loop()):
            raise NotInGraph("a gated function that blocks was called on the event loop beside another gated call")
        with self._held():
            yield

    @asynccontextmanager
    async def aturn(self) -> AsyncIterator[None]:
        if self._turns in _inside.get():
            yield
            return
        while not self._turns.lock.acquire(blocking=False):  # noqa: ASYNC110 - it is held by threads as well
            await asyncio.sleep(_POLL_SECONDS)
        with self._held():
            yield

    @contextmanager
    def _held(self) -> Iterator[None]:
        """A task that has asked is at its end: whoever comes after asks the same, and starts nothing."""
        token = _inside.set((*_inside.get(), self._turns))
        with _turns_lock:
            _alive.add(self)
        try:
            if self._turns.asked is not None:
                raise self._turns.asked
            yield
        finally:
            with _turns_lock:
                _alive.discard(self)
            _inside.reset(token)
            self._turns.lock.release()

    def count(self, kind: str) -> int:
        """How many calls of this kind the task has made before, in this execution of it."""
        self._turns.made[kind] += 1
        return self._turns.made[kind] - 1

    @property
    def interrupt_ids(self) -> list[str]:
        """The ids of all questions of this task that were answered so far, and of the one that comes next."""
        return [_interrupt_id(self.ns, index) for index in range(len(self._scratchpad.resume) + 1)]

    def answers(self, owns: Callable[[str], bool]) -> list[tuple[str, Json]]:
        """The answers to those questions that `owns` says are meant, oldest first, with the question's id."""
        ids, given = self.interrupt_ids, self._scratchpad.resume
        unnamed = self._scratchpad.get_null_resume(False) is not None
        if unnamed and owns(ids[-1]):  # an answer that names no question goes to the one that is open
            given.append(self._scratchpad.get_null_resume(True))
        if given:
            self._send([(RESUME, given)])
        return [(id, answer) for id, answer in zip(ids, given, strict=False) if owns(id)]

    def skip(self, answered: int) -> None:
        """Those answers were for the gate: what the tool itself asks next comes after them."""
        for _ in range(answered):
            self._scratchpad.interrupt_counter()

    @property
    def next_id(self) -> str:
        return _interrupt_id(self.ns, len(self._scratchpad.resume))

    def ask(self, value: Json, response_schema: Json) -> NoReturn:
        raised = GraphInterrupt((Interrupt(value, self.next_id, response_schema=response_schema),))
        self._turns.asked = raised
        raise raised


def alive(thread_id: str) -> set[str]:
    """The tasks of the thread that stand before the gate or behind it now, in this process."""
    with _turns_lock:
        return {task.ns for task in _alive if task.thread_id == thread_id}


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
