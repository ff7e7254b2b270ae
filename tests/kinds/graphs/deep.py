"""A deep agent whose subagent asks before it ships."""

from __future__ import annotations

from deepagents import create_deep_agent  # type: ignore[import-untyped]

from tests.graphs.agents import ScriptedModel
from tests.kinds.graphs.agents import Keeps
from tests.kinds.graphs.orders import ship

agent = create_deep_agent(
    ScriptedModel(),
    middleware=[Keeps()],
    subagents=[
        {
            "name": "shipper",
            "description": "Ships orders.",
            "system_prompt": "Ship what you are told.",
            "tools": [ship],
            "middleware": [Keeps()],
            "interrupt_on": {"ship": True},
        }
    ],
)
