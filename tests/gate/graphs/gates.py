"""The gate in every place, as a server meets it. `log` names a file in which the tools leave a line each time they run.

The `bare` ones have no gate: what is prevented in the others happens there.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt
from typing_extensions import TypedDict

from assent import ApprovalMiddleware, current_grant, gated
from tests.graphs.agents import ScriptedModel, look_up


def send_email(to: str, log: str, die: str = "") -> str:
    """Sends an email. With `die`, the process is killed `before` or `after` the effect, the first time."""
    _die(log, die == "before")
    _note(log, to)
    _die(log, die == "after")
    return f"sent to {to}"


async def post(to: str, log: str) -> str:
    """The same by a coroutine."""
    _note(log, to)
    return f"posted to {to}"


async def hold(to: str, log: str) -> str:
    """The same, but it comes back only once the file `<log>.go` is there."""
    _note(log, to)
    while not Path(f"{log}.go").exists():  # noqa: ASYNC110 - the test makes it
        await asyncio.sleep(0.01)
    return f"held for {to}"


def send_once(to: str, log: str, die: str = "") -> str:
    """The same by a tool that gives its receiver the grant's id."""
    return send_email(to, log, die)


def book(what: str, log: str) -> str:
    """Books a seat, and asks which one."""
    seat = interrupt("which seat?")
    _note(log, f"{what} {seat}")
    return f"booked {seat}"


def _note(log: str, what: str) -> None:
    grant = current_grant()
    with Path(log).open("a") as file:
        file.write(f"{what} {grant.id if grant else '-'}\n")


def _die(log: str, now: bool) -> None:
    died = Path(f"{log}.died")
    if now and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _agent(*middleware: Any) -> Any:
    return create_agent(ScriptedModel(), [send_email, post, hold, send_once, look_up], middleware=middleware)


def _stock(mode: Any) -> HumanInTheLoopMiddleware[Any, Any, Any]:
    return HumanInTheLoopMiddleware({"send_email": True}, interrupt_mode=mode)


ours = _agent(ApprovalMiddleware({"look_up": False}, idempotent=["send_once"]))
drop_in = _agent(ApprovalMiddleware({"look_up": False}, as_hitl_request=True))
batched = _agent(_stock("batched"), ApprovalMiddleware())
batched_bare = _agent(_stock("batched"))
per_call = _agent(_stock("per_call"), ApprovalMiddleware())
per_call_bare = _agent(_stock("per_call"))
booking = create_agent(ScriptedModel(), [book], middleware=[ApprovalMiddleware()])

_plain = StateGraph(MessagesState)
_plain.add_node("model", lambda state: {"messages": [ScriptedModel().bind_tools([1]).invoke(state["messages"])]})
_plain.add_node("tools", ToolNode([gated(tool(send_email)), gated(tool(post))]))
_plain.add_edge(START, "model")
_plain.add_edge("model", "tools")
plain = _plain.compile()


class Payment(TypedDict, total=False):
    amount: int
    log: str
    done: str


@gated(name="pay")
def _pay(amount: int, log: str) -> str:
    _note(log, str(amount))
    return f"paid {amount}"


async def _work(state: Payment) -> Payment:
    """A node that calls a gated function which blocks: in a thread, as LangGraph itself does it with nodes."""
    return {"done": await asyncio.to_thread(_pay, state["amount"], log=state["log"])}


_node = StateGraph(Payment)
_node.add_node("work", _work)
_node.add_edge(START, "work")
node = _node.compile()
