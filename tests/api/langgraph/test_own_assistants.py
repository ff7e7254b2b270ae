"""Every graph's own assistant: there for every tenant, after every start, whatever became of the graphs; and how runs
find an assistant by its id or its graph's name."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TypedDict

import pytest
from langgraph.graph import START, StateGraph

from assent.errors import Conflict, Forbidden, Invalid, NotFound
from assent.identity.model.access import Scope, local_agent
from assent.runs.assistants.assistants import Assistants
from assent.runs.checkpoints.types import CheckpointTypes
from assent.runs.project.graphs import GraphSpec, StaticGraph
from assent.threads.model.assistants import Change, Query, own_id
from assent.threads.rows import assistants as rows
from tests.contract.stores import AnyStore, both_databases

pytestmark = both_databases

AGENT = local_agent()
ALL = Query()
NOBODY = "00000000-0000-4000-8000-000000000000"
Graphs = Mapping[str, GraphSpec]


class State(TypedDict):
    text: str


def titled(graph_id: str, title: str, description: str) -> GraphSpec:
    """The graph as its author names it in the next release."""
    builder = StateGraph(State)
    builder.add_node("only", lambda state: state)
    builder.add_edge(START, "only")
    return StaticGraph(graph_id, description, CheckpointTypes(), builder.compile(name=title))


def some(graphs: Graphs, *names: str) -> Graphs:
    return {name: graphs[name] for name in names}


async def listed(assistants: Assistants) -> list[str]:
    listed_assistants, total = await assistants.search(AGENT, ALL, sort_by="name", descending=False, limit=100)
    assert total == len(listed_assistants)
    return [assistant.name for assistant in listed_assistants]


async def test_processes_that_start_at_once_make_one_assistant_per_graph(store: AnyStore, graphs: Graphs) -> None:
    starts = [Assistants(store, graphs) for _ in range(6)]
    counts = await asyncio.gather(*(start.count(AGENT, ALL) for start in starts))
    assert counts == [len(graphs)] * 6
    own = [await starts[0].get(AGENT, own_id(name)) for name in graphs]
    assert {assistant.version for assistant in own} == {1}
    for assistant in own:
        assert len(await starts[0].versions(AGENT, assistant.id)) == 1


async def test_assistants_of_a_removed_graph_are_hidden(store: AnyStore, graphs: Graphs) -> None:
    before = Assistants(store, some(graphs, "echo", "slow"))
    mine = await before.create(AGENT, "slow", Change(name="mine", context={"m": 1}))
    after = Assistants(store, some(graphs, "echo", "steps"))
    assert await listed(after) == ["echo", "steps"]
    assert await after.count(AGENT, ALL) == 2
    for hidden in (mine.id, own_id("slow")):
        with pytest.raises(NotFound, match="Not Found"):
            await after.get(AGENT, hidden)
        with pytest.raises(NotFound, match="Graph 'slow' not found"):
            await after.resolve(AGENT, hidden)
    with pytest.raises(NotFound, match="Graph 'slow' not found"):
        await after.change(AGENT, mine.id, Change(name="still hidden"))
    again = Assistants(store, some(graphs, "echo", "slow"))
    assert await listed(again) == ["echo", "mine", "slow"]
    assert await again.get(AGENT, mine.id) == mine


async def test_an_assistant_of_a_renamed_graph_can_be_pointed_at_it(store: AnyStore, graphs: Graphs) -> None:
    before = Assistants(store, some(graphs, "slow"))
    mine = await before.create(AGENT, "slow", Change(name="mine"))
    after = Assistants(store, some(graphs, "steps"))
    moved = await after.change(AGENT, mine.id, Change(graph_id="steps"))
    assert (moved.graph_id, moved.version) == ("steps", 2)
    assert await listed(after) == ["mine", "steps"]
    with pytest.raises(NotFound, match="Graph 'slow' not found"):
        await after.set_latest(AGENT, mine.id, 1)


async def test_new_title_of_a_graph_is_used_unless_the_assistant_was_renamed(store: AnyStore, graphs: Graphs) -> None:
    first = Assistants(store, some(graphs, "echo", "slow"))
    await first.change(AGENT, own_id("slow"), Change(name="ours"))
    assert await listed(first) == ["echo", "ours"]
    second = Assistants(store, {name: titled(name, name.upper(), "what it does") for name in ("echo", "slow")})
    assert await listed(second) == ["ECHO", "ours"]
    echo = await second.get(AGENT, own_id("echo"))
    assert (echo.version, echo.description) == (1, "what it does")
    assert [version.name for version in await second.versions(AGENT, echo.id)] == ["ECHO"]


async def test_each_tenant_has_its_own_default_assistants(store: AnyStore, graphs: Graphs) -> None:
    assistants, acme = Assistants(store, graphs), local_agent("acme")
    await assistants.change(acme, own_id("echo"), Change(name="acme's"))
    assert (await assistants.get(AGENT, own_id("echo"))).name == "echo"
    assert (await assistants.resolve(acme, "echo")).name == "acme's"
    assert await assistants.count(acme, ALL) == len(graphs)


async def test_deleted_default_assistant_is_made_again_when_its_graph_is_named(store: AnyStore, graphs: Graphs) -> None:
    assistants = Assistants(store, graphs)
    await assistants.change(AGENT, own_id("echo"), Change(context={"m": 1}))
    await assistants.delete(AGENT, own_id("echo"))
    with pytest.raises(NotFound):
        await assistants.get(AGENT, own_id("echo"))
    assistant = await assistants.resolve(AGENT, "echo")
    assert (assistant.id, assistant.version, assistant.context) == (own_id("echo"), 1, {})
    assert await assistants.get(AGENT, assistant.id) == assistant


async def test_graph_name_always_selects_that_graph(store: AnyStore, graphs: Graphs) -> None:
    before = Assistants(store, some(graphs, "slow"))
    squatter = await before.create(AGENT, "slow", Change(name="squatter"), assistant_id=own_id("echo"))
    after = Assistants(store, some(graphs, "echo", "slow"))
    assert (await after.resolve(AGENT, "echo")).graph_id == "echo"
    assert (await after.get(AGENT, squatter.id)).graph_id == "echo"
    with pytest.raises(Conflict, match="cannot run another graph"):
        await after.change(AGENT, own_id("echo"), Change(graph_id="slow"))
    same = await after.change(AGENT, own_id("echo"), Change(graph_id="echo", name="fine"))
    assert (same.graph_id, same.name) == ("echo", "fine")


@pytest.mark.promise("SERVE-14")
async def test_a_run_finds_its_assistant_by_name_and_by_id(store: AnyStore, graphs: Graphs) -> None:
    assistants = Assistants(store, graphs)
    mine = await assistants.create(AGENT, "echo", Change(name="mine", config={"configurable": {"m": 1}}))
    assert await assistants.resolve(AGENT, mine.id) == mine
    assert await assistants.resolve(AGENT, mine.id.upper()) == mine
    own = await assistants.resolve(AGENT, "echo")
    assert (own.id, own.graph_id) == (own_id("echo"), "echo")
    assert await store.write(AGENT.tenant, assistants.resolve_in, "echo") == own
    assert await store.write(AGENT.tenant, assistants.resolve_in, mine.id) == mine


@pytest.mark.promise("SERVE-14")
async def test_run_with_an_unknown_assistant_is_refused(store: AnyStore, graphs: Graphs) -> None:
    assistants = Assistants(store, graphs)
    for wrong in ("nope", "", "echo ", "../echo"):
        with pytest.raises(Invalid) as refused:
            await assistants.resolve(AGENT, wrong)
        assert refused.value.message.startswith(f"Invalid assistant: '{wrong}'. Must be either:")
        assert ", ".join(graphs) in refused.value.message
    without_echo = Assistants(store, some(graphs, "slow"))
    for resolving in (
        assistants.resolve(AGENT, NOBODY),
        store.write(AGENT.tenant, assistants.resolve_in, NOBODY),
        without_echo.resolve(AGENT, own_id("echo")),
    ):
        with pytest.raises(NotFound, match=r"Thread or assistant not found\."):
            await resolving


async def test_missing_default_assistant_is_made_in_the_callers_transaction(store: AnyStore, graphs: Graphs) -> None:
    assistants = Assistants(store, graphs)
    assistant = await store.write("fresh", assistants.resolve_in, "echo")
    assert await store.read("fresh", rows.get, own_id("echo")) == assistant


async def test_resolving_an_assistant_without_run_and_read_scopes_is_refused(store: AnyStore, graphs: Graphs) -> None:
    assistants = Assistants(store, graphs)
    reader = replace(AGENT, scopes=frozenset({Scope.ITEMS_READ}))
    assert (await assistants.resolve(reader, "echo")).graph_id == "echo"
    commenter = replace(AGENT, scopes=frozenset({Scope.COMMENTS_WRITE}))
    with pytest.raises(Forbidden, match="lacks the scopes runs:write or items:read"):
        await assistants.resolve(commenter, "echo")


async def test_a_server_without_graphs_has_no_assistants(store: AnyStore) -> None:
    assistants = Assistants(store, {})
    assert await listed(assistants) == []
    with pytest.raises(Invalid):
        await assistants.resolve(AGENT, "echo")


async def test_assistant_made_under_the_id_of_a_later_graph_is_replaced_by_the_graphs_own(
    store: AnyStore, graphs: Graphs
) -> None:
    """Its maker would otherwise choose the configuration of everybody's runs by the graph's name."""
    before = Assistants(store, some(graphs, "slow"))
    await before.create(AGENT, "slow", Change(context={"m": 1}), assistant_id=own_id("echo"))
    await before.change(AGENT, own_id("echo"), Change(context={"m": 2}))
    own = await Assistants(store, some(graphs, "echo", "slow")).resolve(AGENT, "echo")
    assert (own.context, own.owner, own.version) == ({}, None, 1)
