"""A tool node as tutorials write it: the model's arguments go to the tool as they are, also those that only LangGraph
should fill in. `injecting` has our gate before the tool; `injecting_free` has nothing: what the gate is compared with.
"""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langchain_core.tools import InjectedToolArg, tool
from langgraph.graph import START, MessagesState, StateGraph

from assent import gated
from tests.graphs_gated.agents import _leave


@tool
def pay(log: str, account: Annotated[str, InjectedToolArg] = "ours") -> str:
    """Pays."""
    _leave(log, account)
    return "paid"


def _calling(made: Any) -> Any:
    def tools(state: MessagesState) -> dict[str, Any]:
        message = state["messages"][-1]
        assert isinstance(message, AIMessage)
        return {"messages": [made.invoke({**call, "type": "tool_call"}) for call in message.tool_calls]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("tools", tools)
    builder.add_edge(START, "tools")
    return builder.compile()


injecting = _calling(gated(pay))
injecting_free = _calling(pay)
