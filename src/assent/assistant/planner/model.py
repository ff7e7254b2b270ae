"""The offline planner as a chat model: LangChain's interface on one side, the rules on the other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from assent.assistant.planner import results, routing, transcript
from assent.assistant.planner.dates.zone import machine_now
from assent.assistant.planner.plan import Planned, plan
from assent.assistant.planner.replies import NAME, speaking
from assent.assistant.planner.tools import Tool, by_role, tool


class OfflinePlanner(BaseChatModel):
    """Plans with the tools of a calendar and a map by rules. It guesses nothing, and says what it is."""

    now: Callable[[], datetime] = Field(default=machine_now, exclude=True)
    """The clock. Its time zone is the one in which days and times are meant."""

    tool_roles: Mapping[str, str] = Field(default_factory=dict)
    """Roles of tools whose name and schema do not tell them: `{"termin_neu": "create_event"}`."""

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages, **kwargs))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for message in _chunks(self._answer(messages, **kwargs)):
            chunk = ChatGenerationChunk(message=message)
            if run_manager:
                run_manager.on_llm_new_token(str(message.content), chunk=chunk)
            yield chunk

    def _answer(
        self,
        messages: list[BaseMessage],
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        bound, now = [tool(schema) for schema in tools], self.now()
        roles = by_role(bound, self.tool_roles)
        forced = _forced(bound, tool_choice) if not roles else None
        if forced:
            return _message(_routed(forced, messages, self.now), now)
        with speaking(_said(messages)):
            return _message(plan(messages, roles, now), now)

    @property
    def _llm_type(self) -> str:
        return "assent-offline-planner"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": NAME, "tool_roles": dict(self.tool_roles)}


def _forced(bound: Sequence[Tool], choice: str | None) -> Tool | None:
    """The schema that has to be filled in, where a structured answer is wanted."""
    if not choice or choice in ("auto", "none"):
        return None
    return next((tool for tool in bound if tool.name == choice or choice in ("any", "required")), None)


def _routed(schema: Tool, messages: Sequence[BaseMessage], now: Callable[[], datetime]) -> Planned:
    return Planned(calls=[(schema.name, routing.structured(schema, _said(messages), now), [])])


def _said(messages: Sequence[BaseMessage]) -> str:
    """The last thing that a person said."""
    return next((results.content(message) for message in reversed(messages) if isinstance(message, HumanMessage)), "")


def _message(planned: Planned, now: datetime) -> AIMessage:
    calls = [tool_call(name=name, args=args, id=f"call_{uuid4().hex}") for name, args, _ in planned.calls]
    owners = {str(call["id"]): goals for call, (_, _, goals) in zip(calls, planned.calls, strict=True)}
    metadata = {"model_name": NAME, **transcript.stamp(now, owners, planned.asks)}
    return AIMessage(content=planned.text, tool_calls=calls, response_metadata=metadata)


def _chunks(message: AIMessage) -> Iterator[AIMessageChunk]:
    """Word by word, then the calls, and what is known about the message with the last."""
    for word in re.findall(r"\s*\S+", str(message.content)):
        yield AIMessageChunk(content=word)
    calls = [
        tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
        for index, call in enumerate(message.tool_calls)
    ]
    metadata = message.response_metadata
    yield AIMessageChunk(content="", tool_call_chunks=calls, response_metadata=metadata, chunk_position="last")
