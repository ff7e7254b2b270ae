"""The assistant's graph, and the factory by which `langgraph.json` names it: `assent.assistant.graph:make_graph`.

    policy_router → task_executor → human_clarification | human_confirmation | use_tools | END
    use_tools → oauth_needed | use_tools | task_executor

Connections open when a node needs them, so reading a thread contacts no server, and stay open for the next turn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from assent.assistant.mcp.configured import shared_client
from assent.assistant.models import executor_model, router_model
from assent.assistant.nodes import Nodes
from assent.assistant.replies import Limits
from assent.assistant.state import RequestState
from assent.assistant.tools import Rules
from assent.assistant.tracing import traced
from assent.extras import require
from assent.settings import AssistantSettings, read_assistant_settings

Graph = CompiledStateGraph[Any, Any, Any, Any]


@asynccontextmanager
async def make_graph(config: RunnableConfig) -> AsyncIterator[Graph]:
    """The assistant as the environment configures it, for one run of a thread."""
    require("assistant", "the reference assistant")
    settings = read_assistant_settings()
    configurable = config.get("configurable") or {}
    thread_id = configurable.get("thread_id")
    if not configurable.get("__is_for_execution__", True):  # only its structure is needed: no provider
        settings = AssistantSettings(calendar=settings.calendar)
    async with opened(settings) as graph:
        with traced(settings, str(thread_id) if thread_id else None) as callbacks:
            yield graph.with_config(callbacks=callbacks) if callbacks else graph


@asynccontextmanager
async def opened(settings: AssistantSettings, **compile_options: Any) -> AsyncIterator[Graph]:
    client = shared_client(settings)
    rules = Rules(settings.tool_mapping, settings.hitl_tools)
    limits = Limits(settings.max_model_calls, settings.max_tool_calls, settings.max_messages)
    nodes = Nodes(router_model(settings), executor_model(settings), client, rules, limits=limits)
    yield assemble(nodes).compile(name="assistant", **compile_options)


def assemble(nodes: Nodes) -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(RequestState)
    graph.add_node("policy_router", nodes.policy_router)
    graph.add_node("task_executor", nodes.task_executor)
    graph.add_node("use_tools", nodes.use_tools)
    graph.add_node("human_clarification", nodes.human_clarification)
    graph.add_node("human_confirmation", nodes.human_confirmation)
    graph.add_node("oauth_needed", nodes.oauth_needed)
    graph.add_edge(START, "policy_router")
    graph.add_edge("policy_router", "task_executor")
    after = ["human_clarification", "human_confirmation", "use_tools", END]
    graph.add_conditional_edges("task_executor", nodes.after_executor, after)
    after = ["human_confirmation", "use_tools", "task_executor"]
    graph.add_conditional_edges("human_clarification", nodes.after_clarification, after)
    graph.add_conditional_edges("human_confirmation", nodes.after_confirmation, ["use_tools", "task_executor"])
    graph.add_conditional_edges("use_tools", nodes.after_tools, ["oauth_needed", "use_tools", "task_executor"])
    graph.add_edge("oauth_needed", "use_tools")
    return graph
