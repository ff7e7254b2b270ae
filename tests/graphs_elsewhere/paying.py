"""An agent for LangGraph's own server, with Assent's gate in that server's process.

The environment of that server has no Assent: what it lacks is taken from the one that `PACKAGES` names.
"""

import os
import sys

sys.path += os.environ["PACKAGES"].split(os.pathsep)

from langchain.agents import create_agent

from assent import ApprovalMiddleware
from tests.graphs.agents import ScriptedModel


def pay(amount: int) -> str:
    """Pays an amount."""
    with open(os.environ["EFFECTS"], "a") as effects:
        effects.write(f"{amount}\n")
    return f"paid {amount}"


graph = create_agent(ScriptedModel(), [pay], middleware=[ApprovalMiddleware()])
batched = create_agent(ScriptedModel(), [pay], middleware=[ApprovalMiddleware(as_hitl_request=True)])
