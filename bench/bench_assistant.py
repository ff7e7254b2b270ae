"""The reference assistant, node by node: how long each takes in whole conversations, pauses left out.

The graph, the gate and the calendar are the real ones, in this process; the models are those that the environment names
(`ASSISTANT_MODEL`, …), else the offline planner. The thresholds leave room for models and tools behind a network, and
for a busy machine; the nodes that only ask a person call neither.
"""

import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from assent import LocalInbox
from assent.assistant.graph import assemble
from assent.assistant.mcp import sharing
from assent.assistant.mcp.configured import create_client, shared_client
from assent.assistant.models import executor_model, router_model
from assent.assistant.nodes import Nodes
from assent.settings import read_assistant_settings
from bench.rows import Row, at_most, reported

ROUNDS = 20
MOST_PAUSES = 10
SECONDS = {
    "policy_router": 5.0,
    "task_executor": 16.0,
    "human_clarification": 1.0,
    "human_confirmation": 1.0,
    "use_tools": 5.0,
    "oauth_needed": 1.0,
}
"""What each node may take, nineteen times out of twenty."""
STDIO_SECONDS = 0.15

REQUESTS = (
    "schedule something",
    "create a meeting called Standup tomorrow at 9am",
    "create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm",
    "book a room tomorrow at 3pm",
    "what's on my calendar tomorrow?",
)

Times = dict[str, list[float]]


def run(rounds: int = ROUNDS) -> list[Row]:
    return [*_turns(rounds), *nodes(rounds)]


def _turns(rounds: int) -> list[Row]:
    first, *later = asyncio.run(turns_over_stdio(rounds))
    wall, cpu = (median(seconds) * 1e3 for seconds in zip(*later, strict=True))
    return [
        reported("assistant: MCP part of the first turn, stdio", first[0] * 1e3, "ms"),
        at_most("assistant: MCP part of a later turn, stdio", wall, "ms", target=STDIO_SECONDS * 1e3),
        at_most("assistant: the same in CPU time, server included", cpu, "ms", target=STDIO_SECONDS * 1e3),
    ]


def nodes(rounds: int) -> list[Row]:
    times = asyncio.run(measured(rounds))
    return [
        at_most(f"assistant: {name}, p95", _p95(times[name]) * 1e3, "ms", target=seconds * 1e3)
        for name, seconds in SECONDS.items()
    ]


async def turns_over_stdio(rounds: int) -> list[tuple[float, float]]:
    """What a server that a command starts adds to each turn, in seconds and in seconds of CPU time: its tools are
    listed before and after a person's decision, and a tool is called."""
    times = []
    with TemporaryDirectory(prefix="assent-bench-") as folder:
        command = f"{sys.executable} -m assent calendar --stdio --database {folder}/calendar.db"
        settings = read_assistant_settings({"ASSISTANT_MCP_COMMAND": command})
        for _ in range(rounds + 1):
            began, used = time.perf_counter(), _cpu_seconds()
            await shared_client(settings).tools()
            servers = shared_client(settings)
            await servers.ready("list_calendars")
            await servers.call("list_calendars", {})
            times.append((time.perf_counter() - began, _cpu_seconds() - used))
        await sharing.close_all()
    return times


def _cpu_seconds() -> float:
    """Of this process and the servers that it has started."""
    this = psutil.Process()
    spent = (process.cpu_times() for process in (this, *this.children(recursive=True)))
    return sum(times.user + times.system for times in spent)


async def measured(rounds: int) -> Times:
    times: Times = defaultdict(list)
    with TemporaryDirectory(prefix="assent-bench-") as folder:
        settings = _settings(Path(folder))
        client = create_client(settings)
        inbox = LocalInbox(Path(folder) / "gate.db")
        nodes = timed(Nodes(router_model(settings), executor_model(settings), client, inbox=inbox), times)
        graph = assemble(nodes).compile(checkpointer=InMemorySaver())
        for number in range(rounds):
            for request in REQUESTS:
                await _converse(graph, inbox, f"{number}: {request}", request)
        await client.close()
    return times


def _settings(folder: Path) -> Any:
    return read_assistant_settings().model_copy(update={"calendar": folder / "calendar.db"})


def timed(nodes: Nodes, times: Times) -> Nodes:
    """Every node writes down how long it took, each time that it came to its end."""
    for name in SECONDS:
        object.__setattr__(nodes, name, _timed(getattr(nodes, name), times[name]))
    return nodes


def _timed(node: Callable[[Any], Awaitable[Any]], times: list[float]) -> Callable[[Any], Awaitable[Any]]:
    async def measure(state: Any) -> Any:
        began = time.perf_counter()
        update = await node(state)
        times.append(time.perf_counter() - began)
        return update

    return measure


async def _converse(graph: Any, inbox: LocalInbox, thread: str, request: str) -> None:
    """Says it, and answers whatever is asked until nothing is."""
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    said: Any = {"messages": [HumanMessage(request)]}
    for _ in range(MOST_PAUSES):
        result = await graph.ainvoke(said, config, durability="sync")
        pauses = result.get("__interrupt__")
        if not pauses:
            return
        said = _answer(pauses[0].value, inbox, thread)
    raise RuntimeError(f"{request!r} came to no end")


def _answer(asked: Mapping[str, Any], inbox: LocalInbox, thread: str) -> Any:
    kind = asked.get("kind")
    if kind == "clarification":
        said = [{"call_id": one["call_id"], "response": "a meeting tomorrow at 3pm"} for one in asked["clarifications"]]
        return Command(resume={"responses": said})
    if kind == "confirmation":
        return Command(
            resume={"approvals": [{"call_id": one["call_id"], "approved": True} for one in asked["tool_calls"]]}
        )
    if kind == "form_elicitation":
        return Command(resume={"action": "accept", "content": {"people": 4}})
    for item in inbox.items():  # the gate asks for itself where no server has kept the approval
        inbox.decide(item.id, "approve", revision=item.revision, hash=item.hash, by="bench")
    return inbox.command(thread)


def _p95(times: list[float]) -> float:
    return quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
