"""Agents that ask before they ship: by LangChain's middleware, in both of its modes, and by our gate.

Their state holds the author's own classes, in a field whose type names none of them.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState, HumanInTheLoopMiddleware

from assent import ApprovalMiddleware
from tests.graphs.agents import ScriptedModel
from tests.kinds.graphs.orders import names, samples, ship


def _latest(before: Any, after: Any) -> Any:
    return after


class Keeping(AgentState[Any]):
    """Subagents that end together write to it together."""

    kept: NotRequired[Annotated[Any, _latest]]
    types: NotRequired[Annotated[list[str], _latest]]


class Keeps(AgentMiddleware[Any, Any, Any]):
    """Puts own objects into the state before the agent asks, and notes what they are when it ends."""

    state_schema = Keeping

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"kept": samples()}

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"types": names(state["kept"])}


def _agent(asks: AgentMiddleware[Any, Any, Any]) -> Any:
    return create_agent(ScriptedModel(), [ship], middleware=[Keeps(), asks])


batched = _agent(HumanInTheLoopMiddleware({"ship": True}))
per_call = _agent(HumanInTheLoopMiddleware({"ship": True}, interrupt_mode="per_call"))
gate = _agent(ApprovalMiddleware())
