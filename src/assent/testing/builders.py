"""Policies and calls in one line each, for tests that have no graph and no file."""

from __future__ import annotations

from typing import Any

from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id
from assent.review.model import policies
from assent.review.model.grants import Call
from assent.review.model.policies import Effect, Policy

THREAD = "thread-1"


def rule(tool: str, then: str, **fields: Any) -> dict[str, Json]:
    """A rule about a tool: `rule("pay", "ask", when="args.amount > 100", approvals=2)`."""
    return {"name": f"{then} {tool}", "tool": tool, "then": then, **fields}


def policy(*rules: dict[str, Json], default: str = "ask") -> Policy:
    """A policy of these rules. Raises `InvalidPolicy` as the server does."""
    return policies.from_json({"rules": list(rules), "default": default})


def gated_call(tool: str, /, *, thread_id: str = THREAD, **args: Any) -> Call:
    """A call that an agent is about to make. Each has an id of its own."""
    call_id = new_id()
    return Call(thread_id=thread_id, call_id=call_id, tool=tool, args=args, task=call_id)


def judged(policy: Policy, call: Call, *, graph: str = "graph", agent: str = "agent") -> Effect:
    """The policy's effect on the call: `allow`, `ask`, `never` or `advise`."""
    asked = policies.Call(call.tool, call.args, graph=graph, agent=agent, tenant=DEFAULT_TENANT)
    return policies.judge(policy, asked).effect
