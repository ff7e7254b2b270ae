"""Agents that ask before they ship: LangChain's middleware in both of its modes, and a deep agent by its subagent.

The environment of another server has LangGraph, but no agents: what it lacks is taken from the one that `PACKAGES`
names.
"""

import os
import sys

sys.path += filter(None, os.environ.get("PACKAGES", "").split(os.pathsep))

from deepagents import create_deep_agent  # type: ignore[import-untyped]
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware

from tests.graphs.agents import ScriptedModel


def ship(city: str, log: str) -> str:
    """Ships an order to a city."""
    with open(log, "a", encoding="utf-8") as effects:
        effects.write(f"{city}\n")
    return f"shipped to {city}"


shipper = {
    "name": "shipper",
    "description": "Ships orders.",
    "system_prompt": "Ship what you are told.",
    "tools": [ship],
    "interrupt_on": {"ship": True},
}
batched = create_agent(ScriptedModel(), [ship], middleware=[HumanInTheLoopMiddleware({"ship": True})])
per_call = create_agent(
    ScriptedModel(), [ship], middleware=[HumanInTheLoopMiddleware({"ship": True}, interrupt_mode="per_call")]
)
deep = create_deep_agent(ScriptedModel(), subagents=[shipper])
