"""Questions in every dialect, one and several, in nodes, subgraphs, tasks and tools."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    text: str
    answers: Annotated[list[Any], operator.add]


def _asks(*questions: Any, **options: Any) -> Any:
    async def ask(state: State) -> State:
        return {"answers": [interrupt(question, **options) for question in questions]}

    return ask


def _asking(node: Any) -> Any:
    return StateGraph(State).add_node("ask", node).add_edge(START, "ask").compile()


class Choice(BaseModel):
    colour: str
    amount: int = 1


ask_text = _asking(_asks("What next?"))
ask_dict = _asking(_asks({"question": "What next?", "options": [1, 2]}))
ask_twice = _asking(_asks("First?", "Second?"))
ask_schema = _asking(_asks("Which?", response_schema=Choice))
ask_human = _asking(
    _asks(
        {
            "action_request": {"action": "send", "args": {"to": "a@b.c"}},
            "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": True},
            "description": "Send it?",
        }
    )
)
ask_batched = _asking(
    _asks(
        {
            "action_requests": [{"name": "send", "args": {"to": "a@b.c"}, "description": "Send it?"}],
            "review_configs": [{"action_name": "send", "allowed_decisions": ["approve", "edit", "reject"]}],
        }
    )
)
ask_clarification = _asking(_asks({"type": "clarification", "question": "Which day?"}))

ask_parallel = (
    StateGraph(State)
    .add_node("left", _asks("Left?"))
    .add_node("right", _asks("Right?"))
    .add_edge(START, "left")
    .add_edge(START, "right")
    .compile()
)
ask_inside = (
    StateGraph(State)
    .add_node("before", lambda state: {"answers": ["before"]})
    .add_node("child", _asking(_asks("Inside?")))
    .add_edge(START, "before")
    .add_edge("before", "child")
    .compile()
)


async def _ask_each(state: State) -> State:
    return {"answers": [interrupt(f"About {state['text']}?")]}


ask_sent = (
    StateGraph(State)
    .add_node("each", _ask_each)
    .add_conditional_edges(START, lambda state: [Send("each", {"text": letter}) for letter in "ab"], ["each"])
    .compile()
)


async def buy(what: str) -> str:
    """Buys something, after a question."""
    return f"{what}: {interrupt({'buy': what})}"


async def _call_tool(state: MessagesState) -> Any:
    call = {"name": "buy", "args": {"what": "milk"}, "id": "call_1", "type": "tool_call"}
    return {"messages": [AIMessage("", tool_calls=[call], id="calls")]}


ask_tool = (
    StateGraph(MessagesState)
    .add_node("model", _call_tool)
    .add_node("tools", ToolNode([buy]))
    .add_edge(START, "model")
    .add_edge("model", "tools")
    .compile()
)


@task
async def double(number: int) -> int:
    return number * 2


@entrypoint()
async def functional(order: dict[str, Any]) -> dict[str, Any]:
    first, second = await double(1), await double(int(order.get("number", 0)))
    return {"numbers": [first, second]}


@task
async def ask_person(question: str) -> Any:
    return interrupt(question)


@entrypoint()
async def functional_asking(order: dict[str, Any]) -> dict[str, Any]:
    doubled = await double(int(order.get("number", 0)))
    return {"doubled": doubled, "answer": await ask_person(f"{doubled}?")}


@entrypoint()
async def functional_previous(order: dict[str, Any], *, previous: Any = None) -> Any:
    total = (previous or 0) + int(order.get("number", 0))
    return entrypoint.final(value={"total": total}, save=total)
