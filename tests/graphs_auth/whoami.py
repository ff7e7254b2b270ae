"""A graph that says for whom it runs, and one step that can wait for a person."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    ask: bool
    user: dict[str, Any]
    named: list[str]


async def say(state: State, config: RunnableConfig) -> State:
    if state.get("ask"):
        interrupt("go on?")
    named = config["configurable"]
    return {
        "user": dict(named["langgraph_auth_user"]),
        "named": [named["user_id"], named["langgraph_auth_user_id"], *named["langgraph_auth_permissions"]],
    }


graph = StateGraph(State).add_node(say).add_edge(START, "say").compile()
