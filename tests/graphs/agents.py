"""Agents around a model that follows a script, so that no network is needed and every process gives the same answers.

The last human message is the script: a JSON list of tool calls (`[{"name": "send_email", "args": {…}}]`) is called, any
other text is sent as one email. Once there are tool results, the model sums them up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langgraph.graph import START, MessagesState, StateGraph


class ScriptedModel(BaseChatModel):
    """Deterministic: what it says depends on the messages alone. Streams word by word."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(has_tools=True)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_reply(messages, bool(kwargs.get("has_tools"))))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = _reply(messages, bool(kwargs.get("has_tools")))
        if reply.tool_calls:
            calls = [
                tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
                for index, call in enumerate(reply.tool_calls)
            ]
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=calls))
            return
        for word in reply.text.split(" "):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))
            if run_manager is not None:
                run_manager.on_llm_new_token(f"{word} ", chunk=chunk)
            yield chunk


def _reply(messages: list[BaseMessage], has_tools: bool) -> AIMessage:
    last_human = max(i for i, message in enumerate(messages) if isinstance(message, HumanMessage))
    results = [message.text for message in messages[last_human:] if isinstance(message, ToolMessage)]
    script = messages[last_human].text
    if results or not has_tools:
        return AIMessage(content=f"done: {'; '.join(results)}" if results else f"you said: {script}")
    calls = [{**call, "id": f"call_{last_human}_{index}"} for index, call in enumerate(_calls(script))]
    return AIMessage(content="", tool_calls=calls)


def _calls(script: str) -> list[dict[str, Any]]:
    if script.startswith("["):
        calls: list[dict[str, Any]] = json.loads(script)
        return calls
    return [{"name": "send_email", "args": {"to": "a@b.c", "body": script}}]


def send_email(to: str, body: str, log: str = "") -> str:
    """Sends an email; with `log`, leaves a line in that file so that its runs can be counted."""
    if log:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(descriptor, f"{to}: {body}\n".encode())
        os.close(descriptor)
    return f"sent to {to}"


def look_up(term: str) -> str:
    """Looks a term up; needs nobody's approval."""
    return f"{term} is known"


async def _talk(state: MessagesState) -> dict[str, Any]:
    return {"messages": [await ScriptedModel().ainvoke(state["messages"])]}


_chat = StateGraph(MessagesState)
_chat.add_node("talk", _talk)
_chat.add_edge(START, "talk")
chat = _chat.compile()

batched = create_agent(
    ScriptedModel(), [send_email, look_up], middleware=[HumanInTheLoopMiddleware({"send_email": True})]
)
per_call = create_agent(
    ScriptedModel(),
    [send_email, look_up],
    middleware=[HumanInTheLoopMiddleware({"send_email": True}, interrupt_mode="per_call")],
)
