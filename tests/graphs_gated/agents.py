"""Agents whose one tool leaves a line in a file, so that what was done can be counted from outside.

`gated` has our gate before the tool. `forgiving` has it too, inside a middleware that turns errors into results.
`stock` has LangChain's own middleware and nothing else: what the gate is compared with. The model follows a script
(`tests/graphs/agents.py`).
"""

from __future__ import annotations

import os
import time
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp

from assent import ApprovalMiddleware
from tests.graphs.agents import ScriptedModel


def act(log: str, tag: str, pause: float = 0.0) -> str:
    """Leaves `tag` in the file `log`. That it was called stands in `<log>.calls` before, with the moment; the pauses
    around the effect make room for accidents."""
    _leave(f"{log}.calls", f"{tag} {time.monotonic_ns()}")
    time.sleep(pause)
    _leave(log, tag)
    time.sleep(pause)
    return f"did {tag}"


def _leave(file: str, line: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def gated_agent(**options: Any) -> Any:
    return create_agent(ScriptedModel(), [act], middleware=[ApprovalMiddleware()], **options)


class Forgiving(AgentMiddleware[Any, Any, Any]):
    """Tells the model about an error instead of failing the run."""

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 - that is what such a middleware does
            return ToolMessage(f"failed: {error!r}", tool_call_id=request.tool_call["id"], status="error")


def forgiving_agent(**options: Any) -> Any:
    return create_agent(ScriptedModel(), [act], middleware=[Forgiving(), ApprovalMiddleware()], **options)


def stock_agent(**options: Any) -> Any:
    asks = HumanInTheLoopMiddleware({"act": True}, interrupt_mode="per_call")
    return create_agent(ScriptedModel(), [act], middleware=[asks], **options)


gated = gated_agent()
forgiving = forgiving_agent()
stock = stock_agent()
