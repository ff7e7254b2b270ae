"""The classes of messages, each of which is stored as one part. By name, so that LangChain is not imported."""

from __future__ import annotations

PACKAGE = "langchain_core.messages"
MESSAGES = (
    ("ai", "AIMessage"),
    ("ai", "AIMessageChunk"),
    ("chat", "ChatMessage"),
    ("function", "FunctionMessage"),
    ("human", "HumanMessage"),
    ("human", "HumanMessageChunk"),
    ("modifier", "RemoveMessage"),
    ("system", "SystemMessage"),
    ("tool", "ToolMessage"),
)
"""Module and class."""
