"""Graphs that are made when they are needed: from the config, as an async context manager, and from the runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph_sdk.runtime import ServerRuntime


class State(TypedDict, total=False):
    text: str
    reply: str


class Connection:
    """Something that must be closed; `open_now` says how many are not."""

    open_now = 0

    async def __aenter__(self) -> Connection:
        Connection.open_now += 1
        return self

    async def __aexit__(self, *exc: object) -> None:
        Connection.open_now -= 1


def _greeter(greeting: str) -> StateGraph[State]:
    def greet(state: State) -> State:
        return {"reply": f"{greeting}, {state.get('text', '')}"}

    builder = StateGraph(State)
    builder.add_node("greet", greet)
    builder.add_edge(START, "greet")
    return builder


def make_graph(config: RunnableConfig) -> StateGraph[State]:
    return _greeter(config.get("configurable", {}).get("greeting", "hello"))


@asynccontextmanager
async def opened_graph(config: RunnableConfig) -> AsyncIterator[StateGraph[State]]:
    async with Connection():
        yield _greeter(f"{Connection.open_now} open")


async def runtime_graph(runtime: ServerRuntime[None]) -> StateGraph[State]:
    return _greeter("running" if runtime.execution_runtime else f"looked at by {runtime.access_context}")
