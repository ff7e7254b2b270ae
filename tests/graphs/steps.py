"""Five steps with a durable trace: each appends a line to the file that its input names, so that repeated steps can be
counted after a process was killed."""

from __future__ import annotations

import os
import time
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph

NAMES = ("one", "two", "three", "four", "five")


class State(TypedDict, total=False):
    path: str
    tag: str
    delay: float
    done: str


def record(path: str, line: str) -> None:
    """One write with O_APPEND, on disk before it returns: lines of several processes never mix, none is lost."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _step(name: str) -> Any:
    def step(state: State) -> State:
        time.sleep(state.get("delay", 0))
        record(state["path"], f"{state.get('tag', '')}:{name}")
        return {"done": name}

    return step


builder = StateGraph(State)
for before, name in zip((START, *NAMES), NAMES, strict=False):
    builder.add_node(name, _step(name))
    builder.add_edge(before, name)
graph = builder.compile()
