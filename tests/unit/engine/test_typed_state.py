"""State of the author's own classes through whole runs: builders, compiled graphs, factories; also across processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from assent.errors import BlockedType
from assent.runs import losses
from assent.runs.project.graphs import GraphSpec
from assent.runs.project.loader import load_graphs
from tests.unit.engine.conftest import EXAMPLES, Project
from tests.unit.engine.test_loader import run_python

THREAD: Any = {"configurable": {"thread_id": "1"}}

MODELS = """
    from dataclasses import dataclass
    from enum import Enum
    from pydantic import BaseModel

    class Risk(Enum):
        HIGH = "high"

    @dataclass
    class Cost:
        amount: int

    class Plan(BaseModel):
        goal: str

    VALUES = {"pydantic": Plan(goal="g"), "dataclass": Cost(598), "enum": Risk.HIGH}
"""

AGENT = """
    from typing import Any, TypedDict
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt
    from models import VALUES, Cost, Plan, Risk

    class State(TypedDict, total=False):
        kind: str
        value: FIELD
        same: bool

    def make(state):
        return {"value": VALUES[state["kind"]]}

    def compare(state):
        interrupt("go on?")
        value = VALUES[state["kind"]]
        return {"same": type(state["value"]) is type(value) and state["value"] == value}

    builder = StateGraph(State)
    builder.add_node("make", make)
    builder.add_node("compare", compare)
    builder.add_edge(START, "make")
    builder.add_edge("make", "compare")
    compiled = builder.compile()
    configured = builder.compile().with_config(tags=["a"])
    parent = StateGraph(State)
    parent.add_node("child", builder.compile())
    parent.add_edge(START, "child")

    def factory(config):
        return builder
"""

SHAPES = ["builder", "compiled", "configured", "factory", "parent"]


def load(project: Project, shape: str, annotation: str = "Plan | Cost | Risk", **options: Any) -> GraphSpec:
    """Its models are installed, so they are none of the project's own."""
    files = {"site-packages/models.py": MODELS, "agent.py": AGENT.replace("FIELD", annotation)}
    document = {"graphs": {"agent": f"./agent.py:{shape}"}, "dependencies": [".", "./site-packages"]}
    loaded = load_graphs(project(files, **document), **options)
    assert loaded.failures == {}
    return loaded.graphs["agent"]


async def run_and_resume(spec: GraphSpec, kind: str) -> dict[str, Any]:
    """Each half opens the graph anew, so the second reads what the first stored."""
    saver = InMemorySaver()
    async with spec.open({}, checkpointer=saver, store=None) as graph:
        await graph.ainvoke({"kind": kind}, THREAD)
    async with spec.open({}, checkpointer=saver, store=None) as graph:
        result: dict[str, Any] = await graph.ainvoke(Command(resume=True), THREAD)
        assert (await graph.aget_state(THREAD)).values == result
    return result


@pytest.mark.promise("DROP-03")
@pytest.mark.parametrize("kind", ["pydantic", "dataclass", "enum"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_typed_state_survives_a_pause(project: Project, shape: str, kind: str) -> None:
    assert (await run_and_resume(load(project, shape), kind))["same"] is True


@pytest.mark.parametrize(("kind", "name"), [("pydantic", "Plan"), ("dataclass", "Cost"), ("enum", "Risk")])
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_blocked_type_fails_the_run_by_name(project: Project, shape: str, kind: str, name: str) -> None:
    spec = load(project, shape, annotation="Any")
    saver = InMemorySaver()
    with pytest.raises(BlockedType, match=f'models:{name} is not .* add "models:{name}" to checkpoint_types'):
        async with spec.open({}, checkpointer=saver, store=None) as graph:
            await graph.ainvoke({"kind": kind}, THREAD)
    async with spec.open({}, checkpointer=saver, store=None, access="threads.read") as graph:
        # Nothing of it was stored, so the thread can still be read.
        assert "value" not in (await graph.aget_state(THREAD, subgraphs=True)).values


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("shape", ["compiled", "parent"])
async def test_blocked_type_fails_the_run_with_every_durability(project: Project, shape: str, durability: Any) -> None:
    spec = load(project, shape, annotation="Any")
    with pytest.raises(BlockedType):
        async with spec.open({}, checkpointer=InMemorySaver(), store=None) as graph:
            await graph.ainvoke({"kind": "enum"}, THREAD, durability=durability)


async def test_the_control_langgraph_swallows_a_write_that_failed_in_a_paused_subgraph(project: Project) -> None:
    async with load(project, "parent", annotation="Any").open({}, checkpointer=InMemorySaver(), store=None) as graph:
        lost = losses.watch()  # instead of the opened graph
        paused = await graph.ainvoke({"kind": "enum"}, THREAD, durability="async")
        assert "__interrupt__" in paused
        assert {type(error) for error in lost} == {BlockedType}


@pytest.mark.parametrize(("kind", "name"), [("pydantic", "Plan"), ("dataclass", "Cost"), ("enum", "Risk")])
async def test_type_listed_in_the_setting_is_kept(project: Project, kind: str, name: str) -> None:
    spec = load(project, "compiled", annotation="Any", checkpoint_types=[f"models:{name}"])
    assert (await run_and_resume(spec, kind))["same"] is True


ONE_HALF = """
import asyncio, json, pathlib
from assent.runs.project.loader import load_graphs
from assent.runs.project.manifest import read_manifest
spec = load_graphs(read_manifest(pathlib.Path({manifest!r}))).graphs["typed"]
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

async def main():
    thread = {{"configurable": {{"thread_id": "1"}}}}
    async with AsyncSqliteSaver.from_conn_string({database!r}) as saver:
        async with spec.open({{}}, checkpointer=saver, store=None) as graph:
            await graph.ainvoke({given}, thread)
            values = (await graph.aget_state(thread)).values
            print(json.dumps({{key: repr(value) for key, value in values.items()}}))

asyncio.run(main())
"""


def test_typed_state_is_read_in_another_process(tmp_path: Path) -> None:
    place = {"manifest": str(EXAMPLES / "langgraph.json"), "database": str(tmp_path / "checkpoints.db")}
    first = run_python(ONE_HALF.format(given="{'goal': 'rent'}", **place))
    second = run_python(ONE_HALF.format(given="Command(resume=True)", **place))
    assert first["plan"].startswith("Plan(goal='rent', steps=[Step(title='pay', risk=<Risk.HIGH: 'high'>)]")
    assert second == {**first, "agreed": "True"}
