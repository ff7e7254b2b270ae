"""An author's agent as in the README, with a model that works offline: copied into a project of its own."""

import os
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from assent import ApprovalMiddleware


class Offline(GenericFakeChatModel):
    """Sends one email, and then says so."""

    messages: Any = None

    def bind_tools(self, tools: Sequence[Any], **named: Any) -> "Offline":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **named: Any) -> ChatResult:
        sent = isinstance(messages[-1], ToolMessage)
        call = {"name": "send_email", "args": {"to": "ana@example.com"}, "id": "call-1"}
        said = AIMessage("sent") if sent else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def send_email(to: str) -> str:
    """Sends an email."""
    with open(os.environ["SENT"], "a") as sent:
        print(to, file=sent)
    return "sent"


agent = create_agent(Offline(), tools=[send_email], middleware=[ApprovalMiddleware({})])
