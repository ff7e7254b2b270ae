"""A chat model that says what a test wrote down, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field


class Scripted(BaseChatModel):
    """Says the next line of the script each time; after the last one, `done`. An exception in it is raised."""

    script: list[Any]
    heard: list[list[BaseMessage]] = Field(default_factory=list)
    bound: list[list[str]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        self.bound.append([tool["function"]["name"] for tool in tools])
        return self.bind()

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.heard.append(messages)
        line = self.script.pop(0) if self.script else AIMessage("done")
        if isinstance(line, Exception):
            raise line
        return ChatResult(generations=[ChatGeneration(message=line)])


class Allowing(Scripted):
    """A router that allows the same types for every request, or answers something that makes no sense."""

    script: list[Any] = Field(default_factory=list)
    types: Any = ()

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        return self.bind() | self._answered

    def _answered(self, message: Any) -> Any:
        return {"types": list(self.types)} if isinstance(self.types, list | tuple) else self.types


def call(name: str, id: str | None = None, /, **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args, id=id or f"call_{uuid4().hex}", type="tool_call")


def calls(*made: ToolCall, text: str = "") -> AIMessage:
    return AIMessage(text, tool_calls=list(made))


def ask(question: str, id: str | None = None) -> ToolCall:
    return call("request_clarification", id, question=question)
