"""The example of Agent Inbox's documentation: a node submits the last tool call, which can be answered or ignored.

Serve it with `assent dev --config examples/langgraph.json`, or run it on any checkpointer.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from assent import HumanInterrupt


def my_graph_function(state: MessagesState) -> dict[str, Any]:
    tool_call = last_tool_call(state)
    request: HumanInterrupt = {
        "action_request": {"action": tool_call["name"], "args": tool_call["args"]},
        "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": False, "allow_accept": False},
        "description": email_markdown(tool_call["args"]),
    }
    response = interrupt(request)[0]
    answer = response["args"] if response["type"] == "response" else "The person has ignored this email."
    return {"messages": [ToolMessage(answer, tool_call_id=tool_call["id"])]}


def last_tool_call(state: MessagesState) -> Any:
    message = state["messages"][-1]
    assert isinstance(message, AIMessage)
    return message.tool_calls[-1]


def email_markdown(email: dict[str, Any]) -> str:
    return f"# {email['subject']}\n\n**To**: {email['to']}\n\n{email['body']}"


builder = StateGraph(MessagesState)
builder.add_node("my_graph_function", my_graph_function)
builder.add_edge(START, "my_graph_function")
graph = builder.compile()
