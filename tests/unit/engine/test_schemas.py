"""Drawing and schemas, as the clients of /assistants/{id}/graph, schemas and subgraphs get them."""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.pregel import Pregel
from typing_extensions import TypedDict

from assent.runs.project.loader import load_graphs
from assent.runs.project.manifest import Manifest
from assent.runs.project.schemas import drawing, schemas, subgraphs


@dataclass
class Context:
    language: str = "en"


class Input(TypedDict):
    text: str


class State(Input):
    log: Annotated[list[str], operator.add]


class Odd:
    """Nothing that JSON Schema could say."""


class OddState(TypedDict):
    text: str
    odd: Odd


def compiled(schema: Any, **options: Any) -> Pregel[Any, Any, Any, Any]:
    builder: Any = StateGraph(schema, **options)
    builder.add_node("node", lambda state: state, metadata={"owner": Odd()})
    builder.add_conditional_edges(START, lambda state: "node", ["node"])
    made: Pregel[Any, Any, Any, Any] = builder.compile(name="sample")
    return made


async def opened(examples: Manifest, name: str) -> Pregel[Any, Any, Any, Any]:
    async with (
        load_graphs(examples).graphs[name].open({}, checkpointer=None, store=None, access="assistants.read") as graph
    ):
        return graph


async def test_graph_with_one_node_is_drawn(examples: Manifest) -> None:
    assert drawing(await opened(examples, "echo")) == {
        "nodes": [
            {"id": "__start__", "type": "runnable", "data": {"name": "__start__"}},
            {"id": "echo", "type": "runnable", "data": {"name": "echo"}},
            {"id": "__end__"},
        ],
        "edges": [{"source": "__start__", "target": "echo"}, {"source": "echo", "target": "__end__"}],
    }


def test_conditional_edges_are_marked_and_metadata_is_text() -> None:
    drawn = drawing(compiled(State))
    assert drawn["edges"][0] == {"source": "__start__", "target": "node", "conditional": True}
    assert "Odd object" in drawn["nodes"][1]["metadata"]["owner"]


@pytest.mark.parametrize(("xray", "expected"), [(False, "child"), (True, "child:inner"), (1, "child:inner")])
async def test_xray_draws_subgraphs(examples: Manifest, xray: bool | int, expected: str) -> None:
    nodes = {node["id"] for node in drawing(await opened(examples, "subgraph"), xray=xray)["nodes"]}
    assert expected in nodes


@pytest.mark.parametrize("name", ["entrypoint", "hitl_batched", "typed", "runtime_factory"])
async def test_every_kind_of_graph_can_be_drawn_and_described(examples: Manifest, name: str) -> None:
    graph = await opened(examples, name)
    assert json.loads(json.dumps(drawing(graph, xray=True)))["nodes"]
    assert all(schemas(graph)[key] for key in ("input_schema", "output_schema", "state_schema"))


def test_graph_has_five_schemas() -> None:
    described = schemas(compiled(State, input_schema=Input, context_schema=Context))
    text = {"title": "Text", "type": "string"}
    log = {"items": {"type": "string"}, "title": "Log", "type": "array"}
    assert described["input_schema"]["properties"] == {"text": text}
    assert described["output_schema"]["properties"] == {"text": text, "log": log}
    missing = {"default": None}
    assert described["state_schema"]["properties"] == {"text": missing | text, "log": missing | log}
    assert described["context_schema"]["properties"] == {
        "language": {"default": "en", "title": "Language", "type": "string"}
    }
    assert described["config_schema"] == described["context_schema"]


def test_graph_without_a_context_has_no_context_schema() -> None:
    described = schemas(compiled(State))
    assert (described["config_schema"], described["context_schema"]) == ({}, None)


def test_field_without_a_schema_does_not_hide_the_others() -> None:
    described = schemas(compiled(OddState))
    fields = {"text": {"title": "Text", "type": "string"}, "odd": {"title": "Odd"}}
    for key in ("input_schema", "output_schema"):
        assert described[key]["properties"] == fields
    missing = {"default": None}
    assert described["state_schema"]["properties"] == {name: missing | field for name, field in fields.items()}


async def test_a_plain_typed_dict_is_described_on_any_python(examples: Manifest) -> None:
    described = schemas(await opened(examples, "echo"))
    assert set(described["input_schema"]["properties"]) == {"text", "reply"}


async def test_subgraphs_are_listed_by_namespace(examples: Manifest) -> None:
    graph = await opened(examples, "subgraph")
    assert list(subgraphs(graph)) == ["child"]
    assert list(subgraphs(graph, namespace="child", recurse=True)) == ["child"]
    assert subgraphs(graph, namespace="elsewhere") == {}
    assert set(subgraphs(graph)["child"]["state_schema"]["properties"]) == {"text", "ask", "log"}
