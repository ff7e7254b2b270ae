"""The assistant's graph, and the factory by which `langgraph.json` names it: `assent.assistant.graph:make_graph`.

    policy_router → task_executor → human_clarification | human_confirmation | use_tools | END
    use_tools → oauth_needed | task_executor

Connections open when a node needs them, so reading a thread contacts no server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from assent.assistant.mcp import McpClient, server_at, server_of
from assent.assistant.mcp_faults import shown
from assent.assistant.models import executor_model, router_model
from assent.assistant.nodes import Nodes
from assent.assistant.replies import Limits
from assent.assistant.state import RequestState
from assent.assistant.tools import Rules
from assent.assistant.tracing import traced
from assent.settings import AssistantSettings, read_assistant_settings

Graph = CompiledStateGraph[Any, Any, Any, Any]

_STARTED = "that ASSISTANT_MCP_COMMAND starts"


@asynccontextmanager
async def make_graph(config: RunnableConfig) -> AsyncIterator[Graph]:
    """The assistant as the environment configures it, for one run of a thread."""
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
    client = create_client(settings)
    rules = Rules(settings.tool_mapping, settings.hitl_tools)
    limits = Limits(settings.max_model_calls, settings.max_tool_calls)
    nodes = Nodes(router_model(settings), executor_model(settings), client, rules, limits=limits)
    try:
        yield assemble(nodes).compile(name="assistant", **compile_options)
    finally:
        await client.close()


def create_client(settings: AssistantSettings) -> McpClient:
    """The configured server; without one, the calendar in this process."""
    if settings.mcp_url:
        headers = {name: value.get_secret_value() for name, value in settings.mcp_headers.items()}
        return McpClient(server_at(settings.mcp_url, headers), name=shown(settings.mcp_url), mode=settings.mcp_mode)
    if settings.mcp_command:
        environment = {name: value.get_secret_value() for name, value in settings.mcp_env.items()}
        return McpClient(server_of(settings.mcp_command, environment), name=_STARTED, mode=settings.mcp_mode)
    return McpClient(_calendar(settings), name="in this process", mode=settings.mcp_mode)


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
    graph.add_conditional_edges("use_tools", nodes.after_tools, ["oauth_needed", "task_executor"])
    graph.add_edge("oauth_needed", "use_tools")
    return graph


def _calendar(settings: AssistantSettings) -> Callable[[], Any]:
    def target() -> Any:
        from assent.assistant.calendar.server import create_server

        return create_server(settings.calendar)

    return target
