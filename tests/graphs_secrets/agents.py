"""Agents whose tool takes a secret and repeats it wherever it can: in its result, in an error, in what the model says.

The model follows a script (`tests/graphs/agents.py`); a script that holds `fail` makes the tool raise.
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel, Field

from assent import ApprovalMiddleware
from tests.graphs.agents import ScriptedModel


class Login(BaseModel):
    """`password` is a secret by its name, `memo` by policy, `code` by this schema."""

    user: str
    password: str
    memo: str = ""
    code: str = Field("", json_schema_extra={"x-secret": True})
    mood: str = ""


@tool(args_schema=Login)
def log_in(user: str, password: str, memo: str = "", code: str = "", mood: str = "") -> str:
    """Logs in."""
    if mood == "fail":
        raise RuntimeError(f"refused {password!r} {memo} {code}")
    return f"logged in as {user} with {password} {memo} {code}"


batched = create_agent(ScriptedModel(), [log_in], middleware=[HumanInTheLoopMiddleware({"log_in": True})])
per_call = create_agent(
    ScriptedModel(), [log_in], middleware=[HumanInTheLoopMiddleware({"log_in": True}, interrupt_mode="per_call")]
)
gated = create_agent(ScriptedModel(), [log_in], middleware=[ApprovalMiddleware()])


def _repeat(state: MessagesState) -> dict[str, Any]:
    """Every place in which providers leave the arguments of a call."""
    call = {"name": "log_in", "args": state["messages"][-1].additional_kwargs["args"], "id": "call_r"}
    text = str(state["messages"][-1].additional_kwargs["text"])
    function = {"name": "log_in", "arguments": text}
    made = AIMessage(
        content=[
            {"type": "text", "text": f"I call it with {text}"},
            {"type": "tool_use", "id": "call_r", "name": "log_in", "input": call["args"]},
        ],
        tool_calls=[call],
        invalid_tool_calls=[{"name": "log_in", "args": text[:-1], "id": "call_i", "error": f"not JSON: {text[:-1]}"}],
        additional_kwargs={"tool_calls": [{"id": "call_r", "type": "function", "function": function}]},
        response_metadata={"function_call": function},
    )
    return {"messages": [made]}


_repeating = StateGraph(MessagesState)
_repeating.add_node("repeat", _repeat)
_repeating.add_edge(START, "repeat")
repeating = _repeating.compile()
