"""Messages: models that stream, in nodes and subgraphs, tagged, silent, with tools; removals and ids."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt


def _speaks(text: str, identity: str, **options: Any) -> Any:
    async def say(state: MessagesState) -> Any:
        model = GenericFakeChatModel(messages=iter([AIMessage(text, id=identity)]), **options)
        return {"messages": [await model.ainvoke(state["messages"])]}

    return say


def _one(name: str, node: Any) -> Any:
    return StateGraph(MessagesState).add_node(name, node).add_edge(START, name).compile()


tagged = _one("say", _speaks("one two", "said", tags=["loud"], metadata={"why": "test"}))
silent = _one("say", _speaks("never streamed", "said", tags=["nostream"]))
speaking_inside = (
    StateGraph(MessagesState)
    .add_node("first", _speaks("outer words", "outer"))
    .add_node("child", _one("say", _speaks("inner words", "inner")))
    .add_edge(START, "first")
    .add_edge("first", "child")
    .compile()
)


async def _plain(state: MessagesState) -> Any:
    return {
        "messages": [
            SystemMessage("be kind", id="system"),
            AIMessage("not streamed", id="plain", name="bot", usage_metadata=_USAGE),
            HumanMessage([{"type": "text", "text": "a block"}], id="block"),
        ]
    }


_USAGE: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
plain_messages = _one("say", _plain)


async def _forget(state: MessagesState) -> Any:
    return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), AIMessage("fresh start", id="fresh")]}


forgetting = (
    StateGraph(MessagesState)
    .add_node("say", _plain)
    .add_node("forget", _forget)
    .add_edge(START, "say")
    .add_edge("say", "forget")
    .compile()
)


async def look_up(term: str) -> str:
    """Looks up a term."""
    return f"{term} is known"


async def _call(state: MessagesState) -> Any:
    if isinstance(state["messages"][-1], ToolMessage):
        return {"messages": [AIMessage("done", id="done")]}
    call = {"name": "look_up", "args": {"term": "tea"}, "id": "call_1", "type": "tool_call"}
    return {"messages": [AIMessage("", tool_calls=[call], id="calls")]}


def _next(state: MessagesState) -> str:
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else "__end__"


tools = (
    StateGraph(MessagesState)
    .add_node("model", _call)
    .add_node("tools", ToolNode([look_up]))
    .add_edge(START, "model")
    .add_conditional_edges("model", _next, ["tools", "__end__"])
    .add_edge("tools", "model")
    .compile()
)


async def _reply(state: MessagesState) -> Any:
    model = GenericFakeChatModel(messages=iter([AIMessage(f"you said: {state['messages'][-1].text}")]))
    return {"messages": [await model.ainvoke(state["messages"])]}


def _review(state: MessagesState) -> Any:
    """Asks as LangChain's middleware does, which LangGraph's server does not have here."""
    action = {"name": "send_email", "args": {"to": "a@b.c"}, "description": "an email"}
    config = {"action_name": "send_email", "allowed_decisions": ["approve", "reject"]}
    answer = interrupt({"action_requests": [action], "review_configs": [config]})
    return {"messages": [AIMessage(f"done: {answer['decisions'][0]['type']}")]}


chat = _one("talk", _reply)
hitl_batched = _one("review", _review)
