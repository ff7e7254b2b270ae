"""The task of a graph that makes a gated call: its identity and its interrupts.

LangGraph hands a task its answers by position, in the order in which it happens to ask. That is no order to rely on:
calls of one ToolNode run at once, and whether the gate still has to ask depends on grants, not on the graph. So the
gate's questions have ids of their own, which belong to no position: LangGraph hands their answers to nobody, and the
gate reads them from its keeper. Gated calls of one task take turns.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt

from assent.gate.records import Answered
from assent.gate.upstream import (
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_CHECKPOINTER,
    CONFIG_KEY_RESUME_MAP,
    CONFIG_KEY_SCRATCHPAD,
    CONFIG_KEY_SEND,
    CONFIG_KEY_THREAD_ID,
    NS_SEP,
    RESUME,
    Scratchpad,
    interrupt_id,
    skip_answers,
)
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.grants import Call

_POLL_SECONDS = 0.005


class NotInGraph(RuntimeError):
    """A gated call was made where no person can be asked: outside a graph, or in one without a checkpointer."""


@dataclass(slots=True, eq=False)
class _Turns:
    """The shared state of the gated calls in one execution of a task."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: GraphInterrupt | None = None
    made: Counter[str] = field(default_factory=Counter)
    hidden: set[str] | None = None
    """The gate's questions, once the task's own interrupts pass over them."""


_turns: WeakKeyDictionary[Callable[..., Any], _Turns] = WeakKeyDictionary()
_turns_lock = threading.Lock()
_alive: set[Task] = set()
_inside: ContextVar[tuple[_Turns, ...]] = ContextVar("inside", default=())


class Task:
    def __init__(self, configurable: dict[str, Any]) -> None:
        self._scratchpad: Scratchpad = configurable[CONFIG_KEY_SCRATCHPAD]
        self._send = configurable[CONFIG_KEY_SEND]
        self.thread_id = str(configurable[CONFIG_KEY_THREAD_ID])
        self.ns = str(configurable[CONFIG_KEY_CHECKPOINT_NS])
        self.graph_id = str(configurable.get("graph_id") or "")
        self.run_id = configurable.get("run_id")
        self._answers_by_id = configurable.get(CONFIG_KEY_RESUME_MAP) or {}
        with _turns_lock:  # the scratchpad itself takes no weak reference; this method of it has the same lifetime
            self._turns = _turns.setdefault(self._scratchpad.get_null_resume, _Turns())

    @classmethod
    def current(cls) -> Task:
        try:
            configurable = get_config().get("configurable", {})
        except RuntimeError:
            raise NotInGraph("a gated call must be made inside a graph: outside, no person can be asked") from None
        if CONFIG_KEY_SCRATCHPAD not in configurable:
            raise NotInGraph("a gated call must be made inside a node of a graph")
        if not configurable.get(CONFIG_KEY_CHECKPOINTER) or CONFIG_KEY_THREAD_ID not in configurable:
            raise NotInGraph(
                "a gated call waits for a person: compile the graph with a checkpointer, and pass a thread_id"
            )
        return cls(configurable)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Serialises the gated calls. A nested gated call belongs to the turn of the outer one."""
        if self._turns in _inside.get():
            yield
            return
        with self._alive():
            if not self._turns.lock.acquire(blocking=not _on_a_loop()):
                raise NotInGraph("a blocking gated function was called on the event loop during another gated call")
            with self._held():
                yield

    @asynccontextmanager
    async def aturn(self) -> AsyncIterator[None]:
        if self._turns in _inside.get():
            with self._alive():  # it may have a name of its own
                yield
            return
        with self._alive():
            while not self._turns.lock.acquire(blocking=False):  # noqa: ASYNC110 - threads hold it as well
                await asyncio.sleep(_POLL_SECONDS)
            with self._held():
                yield

    @contextmanager
    def _alive(self) -> Iterator[None]:
        with _turns_lock:
            _alive.add(self)
        try:
            yield
        finally:
            with _turns_lock:
                _alive.discard(self)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """A task that has raised a question ends: every later call raises the same question and starts nothing."""
        token = _inside.set((*_inside.get(), self._turns))
        try:
            if self._turns.asked is not None:
                raise self._turns.asked
            yield
        except GraphInterrupt as raised:
            if self._turns.asked is None and questions_in(raised):  # of the call itself: the next would share its id
                self._turns.asked = raised
            raise
        finally:
            _inside.reset(token)
            self._turns.lock.release()

    def count(self, kind: str) -> int:
        """The number of earlier calls of this kind in this execution of the task."""
        self._turns.made[kind] += 1
        return self._turns.made[kind] - 1

    @property
    def positions(self) -> list[str]:
        """The ids of the task's own questions that were answered so far, and of the one that comes next. Up to 0.2.0,
        questions of the gate were among them."""
        return [interrupt_id(self.ns, index) for index in range(len(self._scratchpad.resume) + 1)]

    def hide(self, questions: Collection[str]) -> None:
        """Hides the answers to questions that the gate asked by position from the interrupts of the task itself, of its
        tools and functions."""
        if questions and self._turns.hidden is None:
            self._turns.hidden = set()
            skip_answers(self._scratchpad, _hidden(self._scratchpad, self.ns, self._turns.hidden))
        if self._turns.hidden is not None:
            self._turns.hidden.update(questions)

    @property
    def answered(self) -> Answered:
        """The questions, of this task or of a graph that it calls, that have answers. An answer without a question id
        belongs to the only open question."""
        ids = frozenset((*self.positions[:-1], *self._answers_by_id))
        return Answered(ids, self._scratchpad.get_null_resume(False) is not None)

    def ask(self, question_id: str, value: Json, response_schema: Json) -> NoReturn:
        self._stop(Interrupt(value, question_id, response_schema=response_schema))

    def ask_again(self, asked: Sequence[Json]) -> NoReturn:
        """Raises the call's own questions again, as `questions_in` recorded them."""
        self._stop(
            *(Interrupt(entry["value"], entry["id"], response_schema=entry["response_schema"]) for entry in asked)
        )

    def ask_together(self, raised: Sequence[GraphInterrupt]) -> None:
        """Raises the questions of several calls as one interrupt, if there are any."""
        if asked := [interrupt for stop in raised if stop.args for interrupt in stop.args[0]]:
            self._stop(*asked)

    def _stop(self, *asked: Interrupt[Any]) -> NoReturn:
        """The answers to the task's own questions, which it may not have reached this time, are kept."""
        if self._scratchpad.resume:
            self._send([(RESUME, list(self._scratchpad.resume))])
        raised = GraphInterrupt(asked)
        self._turns.asked = raised
        raise raised


def question_id(call: Call, answered: int) -> str:
    """The id of the gate's question about this call after so many answered ones. Calls with one call id but other
    arguments or another tool have series of their own. The segment between the namespace and the number has no colon,
    so the id belongs to no position and to no task of a nested graph."""
    return interrupt_id(f"{call.task}{NS_SEP}gate {call.mark}", answered)


def _hidden(scratchpad: Scratchpad, ns: str, questions: Collection[str]) -> Callable[[int], bool]:
    return lambda position: position < len(scratchpad.resume) and interrupt_id(ns, position) in questions


def questions_in(raised: GraphInterrupt) -> list[Json]:
    """The interrupts of a paused call. A value that is not JSON is left out: it cannot be raised again."""
    return [_question(interrupt) for interrupt in raised.args[0]] if raised.args else []


def _question(interrupt: Interrupt[Any]) -> Json:
    asked = {"value": interrupt.value, "response_schema": interrupt.response_schema}
    try:
        canonical.text(asked)
    except canonical.NotJson:
        return {"id": interrupt.id}
    return {"id": interrupt.id, **asked}


def alive(thread_id: str) -> set[str]:
    """The namespaces of the thread's tasks that are inside the gate now, in this process."""
    with _turns_lock:
        return {task.ns for task in _alive if task.thread_id == thread_id}


async def calls_ended(run_id: str) -> None:
    """Waits for the gated calls of the run in this process. A ToolNode stops with the first question of its tools, also
    while an approved call beside it is being made."""
    while _are_alive(run_id):  # noqa: ASYNC110 - threads end as well
        await asyncio.sleep(_POLL_SECONDS)


def _are_alive(run_id: str) -> bool:
    with _turns_lock:
        return any(task.run_id == run_id for task in _alive)


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
