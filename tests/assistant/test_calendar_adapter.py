"""The calendar as LangChain's own MCP client sees it: its questions become interrupts of a LangGraph run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from langchain_core._api.beta_decorator import suppress_langchain_beta_warning
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import MessagesState
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from assent.assistant.calendar.database import Database
from assent.assistant.calendar.login import Login
from tests.assistant.calendars import calendar, call

CONFIG: Any = {"configurable": {"thread_id": "1"}}


async def graph(server: FastMCP, saver: InMemorySaver) -> Any:
    with suppress_langchain_beta_warning():
        from langchain.mcp import MCPAdapter

    tools = await MCPAdapter(server).list_tools()
    builder = StateGraph(MessagesState).add_node("tools", ToolNode(tools)).add_edge(START, "tools")
    return builder.compile(checkpointer=saver)


def calls(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"messages": [AIMessage("", tool_calls=[{"name": tool, "id": "call-1", "args": arguments}])]}


def answered(key: str, **answer: Any) -> Command[Any]:
    return Command(resume={"responses": {key: answer}})


async def test_form_is_answered_after_a_restart_of_both_sides(tmp_path: Path) -> None:
    saver = InMemorySaver()
    paused = await (await graph(calendar(tmp_path), saver)).ainvoke(
        calls("book_room", start="2026-11-17T10:00"), CONFIG
    )
    (question,) = paused["__interrupt__"]
    assert question.value["type"] == "mcp_elicitation"
    assert [(request["key"], request["mode"]) for request in question.value["requests"]] == [("room", "form")]

    later = await graph(calendar(tmp_path), saver)
    done = await later.ainvoke(answered("room", action="accept", content={"people": 3}), CONFIG)
    assert "__interrupt__" not in done
    events = (await call(calendar(tmp_path), "list_events", start_time="2026-11-17"))["events"]
    assert [event["location"] for event in events] == ["Alder, Marenby Town Hall"]


async def test_a_login_that_was_completed_lets_the_same_call_through(tmp_path: Path) -> None:
    server = calendar(tmp_path, login=True, url="https://calendar.example")
    agent = await graph(server, InMemorySaver())
    paused = await agent.ainvoke(calls("create_event", start="2026-11-17T10:00", name="Standup"), CONFIG)
    (request,) = paused["__interrupt__"][0].value["requests"]
    assert (request["key"], request["mode"]) == ("login", "url")
    login = Login(Database(tmp_path / "calendar.db"))
    state = login.state(request["url"].rpartition("/")[2])
    assert state
    assert login.complete(state)
    done = await agent.ainvoke(answered("login", action="accept"), CONFIG)
    assert done["messages"][-1].status == "success"
    events = (await call(server, "list_events", start_time="2026-11-17"))["events"]
    assert [event["name"] for event in events] == ["Standup"]


@pytest.mark.parametrize(("tool", "arguments"), [("create_event", {"start": "soon", "name": "x"}), ("no_tool", {})])
async def test_tool_error_is_a_message_to_the_model(tmp_path: Path, tool: str, arguments: dict[str, Any]) -> None:
    agent = await graph(calendar(tmp_path), InMemorySaver())
    done = await agent.ainvoke(calls(tool, **arguments), CONFIG)
    assert done["messages"][-1].status == "error"
