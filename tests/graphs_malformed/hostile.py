"""Graphs in which a caller's input decides what goes wrong: the state, a question, an error, the way through the graph,
or the process itself. Every graph also takes `FINE`, with which nothing goes wrong."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel


class Kind(TypedDict, total=False):
    kind: str
    said: Any


class Broken(BaseException):
    """No `Exception`: most handlers let it pass."""


class Mute(Exception):
    """An error that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Secretive:
    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def model_dump(self) -> Any:
        raise RuntimeError("no fields")


def _cycle() -> Any:
    found: dict[str, Any] = {}
    found["again"], found["and again"] = found, [found]
    return found


def _nested(levels: int) -> Any:
    found: Any = "bottom"
    for _ in range(levels):
        found = [found]
    return found


VALUES: Mapping[str, Callable[[], Any]] = {
    "nul": lambda: "a\0b",
    "surrogate": lambda: "a\ud800b",
    "surrogate_key": lambda: {"\ud800": 1, "a\0": 2},
    "nan": lambda: [float("nan"), float("inf")],
    "huge": lambda: 10**5000,
    "big": lambda: 2**200,
    "keys": lambda: {1: "a", (1, 2): "b", None: "c", 1.5: "d"},
    "cycle": _cycle,
    "deep": lambda: _nested(150),
    "deeper": lambda: _nested(400),
    "bottomless": lambda: _nested(5000),
    "bytes": lambda: b"\xff\xfe",
    "object": object,
    "secretive": Secretive,
    "function": lambda: _cycle,
    "set": lambda: {1, "a"},
}
ERRORS: Mapping[str, Callable[[], BaseException]] = {
    "plain": lambda: ValueError("boom"),
    "unheard": lambda: Broken("boom"),
    "mute": Mute,
    "cancelled": asyncio.CancelledError,
    "timeout": lambda: TimeoutError("my own"),
    "stop": lambda: StopIteration("boom"),
    "stop_async": lambda: StopAsyncIteration("boom"),
    "group": lambda: ExceptionGroup("several", [ValueError("a\0b\ud800")]),
    "recursion": lambda: RecursionError("deep"),
    "memory": MemoryError,
}


def _one(name: str, node: Any, state: Any = Kind, **options: Any) -> Any:
    builder = StateGraph(state, **options)
    builder.add_node(name, node)
    builder.add_edge(START, name)
    return builder.compile()


async def reply(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage("hello")]}


chat = _one("reply", reply, MessagesState)


def _both(name: str) -> Any:
    def node(state: Kind) -> Kind:
        return {"said": name} if state.get("kind") == "both" or name == "left" else {}

    return node


_clash = StateGraph(Kind)
for _name in ("left", "right"):
    _clash.add_node(_name, _both(_name))
    _clash.add_edge(START, _name)
clash = _clash.compile()


def _refuse(before: Any, more: Any) -> Any:
    """A reducer that refuses by the very kind of error that it is given."""
    if isinstance(more, str) and more in ERRORS:
        raise ERRORS[more]()
    return more


class Refusing(TypedDict, total=False):
    kind: Annotated[str, _refuse]
    said: Annotated[str, _refuse]


async def repeat(state: Refusing) -> Refusing:
    return {"said": state.get("kind", "").removeprefix("node ")}


refusing = _one("repeat", repeat, Refusing)


class Part(BaseModel):
    count: int = 0


class Modelled(BaseModel):
    kind: str = "fine"
    count: int = 0
    part: Part | None = None


def count_on(state: Modelled) -> dict[str, Any]:
    return {"count": "many" if state.kind == "node" else state.count + 1}


def count_again(state: Modelled) -> dict[str, Any]:
    return {"count": state.count + 1}


_modelled = StateGraph(Modelled)
_modelled.add_node("count", count_on)
_modelled.add_node("again", count_again)
_modelled.add_edge(START, "count")
_modelled.add_edge("count", "again")
modelled = _modelled.compile()


@dataclass
class Context:
    user: str = "nobody"
    limit: int = 3

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError("limit: not below zero")


def tell_limit(state: Kind, runtime: Runtime[Context]) -> Kind:
    given: Context | None = runtime.context
    return {"said": str((given or Context()).limit + 1)}


contextual = _one("tell", tell_limit, context_schema=Context)


def speak(state: Kind) -> Any:
    kind = state.get("kind", "")
    if kind == "nothing like a state":
        return ["said"]
    return {"said": VALUES[kind]() if kind in VALUES else "hello"}


speaking = _one("speak", speak)


def ask(state: Kind) -> Kind:
    kind = state.get("kind", "")
    return {"said": interrupt(VALUES[kind]()) if kind in VALUES else "unasked"}


asking = _one("ask", ask)


class Said(TypedDict, total=False):
    kind: str
    said: Annotated[str, _refuse]


def question(state: Said) -> Said:
    return {"said": interrupt("which?")}


def say_kind(state: Said) -> Said:
    return {"said": state["kind"]}


questioning = _one("question", question, Said)

_beside = StateGraph(Said)
for _name, _node in {"question": question, "repeat": say_kind}.items():
    _beside.add_node(_name, _node)
    _beside.add_edge(START, _name)
questioning_beside = _beside.compile()


async def fail(state: Kind) -> Kind:
    if state.get("kind") in ERRORS:
        raise ERRORS[state["kind"]]()
    return {"said": "hello"}


raising = _one("fail", fail)

STEPS: Mapping[str, Callable[[], Any]] = {
    "unknown node": lambda: Command(goto="nowhere"),
    "unknown send": lambda: Command(goto=Send("nowhere", {})),
    "no parent": lambda: Command(graph=Command.PARENT, goto="elsewhere"),
    "bad update": lambda: Command(update=[("nowhere", 1)]),
    "number": lambda: Command(goto=5),
    "loop": lambda: Command(goto="steer"),
}


def steer(state: Kind) -> Any:
    return STEPS[state["kind"]]() if state.get("kind") in STEPS else {"said": "hello"}


steering = _one("steer", steer)


def die(state: Kind) -> Kind:
    """The `kind` names a file: as long as it is there, the process ends here."""
    with open(f"{state['kind']}.lives", "a") as lives:
        lives.write(".")
    if os.path.exists(state["kind"]):
        os._exit(9)
    return {"said": "alive"}


dying = _one("die", die)
