"""The example in Agent Inbox's documentation: it asks about the last tool call, to be ignored or responded to."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from assent.review.dialects.human_interrupt import HumanInterrupt


def my_graph_function(state: MessagesState) -> dict[str, Any]:
    # Extract the last tool call from the `messages` field in the state
    tool_call = state["messages"][-1].tool_calls[0]  # type: ignore[union-attr]
    # Create an interrupt
    request: HumanInterrupt = {
        "action_request": {"action": tool_call["name"], "args": tool_call["args"]},
        "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": False, "allow_accept": False},
        "description": _generate_email_markdown(state),
    }
    # Send the interrupt request, and extract the first response.
    response = interrupt(request)[0]
    said = response["args"] if response["type"] == "response" else f"the person chose to {response['type']} this"
    return {"messages": [ToolMessage(said, tool_call_id=tool_call["id"])]}


def _generate_email_markdown(state: MessagesState) -> str:
    email = state["messages"][-1].tool_calls[0]["args"]  # type: ignore[union-attr]
    return f"# {email['subject']}\n\n**To**: {email['to']}\n\n{email['body']}"


_builder = StateGraph(MessagesState)
_builder.add_node("my_graph_function", my_graph_function)
_builder.add_edge(START, "my_graph_function")
graph = _builder.compile()
