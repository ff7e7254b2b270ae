"""The graph of an assistant over the API: its drawing, its schemas, its subgraphs."""

from typing import Any

import httpx

from assent.threads.model.assistants import own_id
from tests.api.langgraph.server import Server
from tests.contract.stores import only_sqlite

pytestmark = only_sqlite

NESTED = f"/assistants/{own_id('subgraph')}"
NOBODY = "00000000-0000-4000-8000-000000000000"


async def drawn(client: httpx.AsyncClient, path: str) -> tuple[list[str], list[dict[str, Any]]]:
    response = await client.get(path)
    assert response.status_code == 200, response.text
    return [node["id"] for node in response.json()["nodes"]], response.json()["edges"]


async def test_a_graph_is_drawn_by_its_assistants_id_or_its_own_name(client: httpx.AsyncClient) -> None:
    nodes, edges = await drawn(client, "/assistants/echo/graph")
    assert nodes == ["__start__", "echo", "__end__"]
    assert edges == [{"source": "__start__", "target": "echo"}, {"source": "echo", "target": "__end__"}]
    assert await drawn(client, f"/assistants/{own_id('echo')}/graph") == (nodes, edges)


async def test_xray_includes_subgraphs(client: httpx.AsyncClient) -> None:
    plain, _ = await drawn(client, f"{NESTED}/graph")
    assert plain == ["__start__", "outer", "child", "last", "__end__"]
    for closed in ("false", "False"):
        assert (await drawn(client, f"{NESTED}/graph?xray={closed}"))[0] == plain
    for opened in ("true", "True", "1", "2"):
        assert "child:inner" in (await drawn(client, f"{NESTED}/graph?xray={opened}"))[0]
    for wrong in ("0", "-1", "deep", "1.5", "9999999"):
        refused = await client.get(f"{NESTED}/graph?xray={wrong}")
        assert (refused.status_code, refused.json()["detail"]) == (422, "Invalid xray value")


async def test_drawing_of_an_unknown_graph_is_404(client: httpx.AsyncClient) -> None:
    by_name = await client.get("/assistants/nope/graph")
    assert (by_name.status_code, by_name.json()["detail"]) == (422, "Invalid assistant ID: must be a UUID")
    by_id = await client.get(f"/assistants/{NOBODY}/graph")
    assert (by_id.status_code, by_id.json()["detail"]) == (404, "Not Found")


async def test_schemas_are_those_of_the_graph(client: httpx.AsyncClient) -> None:
    body = (await client.get(f"/assistants/{own_id('echo')}/schemas")).json()
    assert body["graph_id"] == "echo"
    assert set(body) == {
        "graph_id",
        "input_schema",
        "output_schema",
        "state_schema",
        "config_schema",
        "context_schema",
    }
    assert set(body["input_schema"]["properties"]) == {"text", "reply"}
    assert (body["config_schema"], body["context_schema"]) == ({}, None)


async def test_subgraphs_are_found_by_their_namespace(client: httpx.AsyncClient) -> None:
    body = (await client.get(f"{NESTED}/subgraphs")).json()
    assert set(body) == {"child"}
    assert "log" in body["child"]["state_schema"]["properties"]
    assert (await client.get(f"{NESTED}/subgraphs?recurse=true")).json() == body
    assert (await client.get(f"{NESTED}/subgraphs/child")).json() == body
    assert (await client.get(f"{NESTED}/subgraphs/other")).json() == {}


async def test_every_example_graph_has_drawing_and_schemas(server: Server, client: httpx.AsyncClient) -> None:
    for name in server.graphs:
        nodes, _ = await drawn(client, f"/assistants/{name}/graph?xray=true")
        assert nodes, name
        for look in ("schemas", "subgraphs?recurse=true"):
            response = await client.get(f"/assistants/{own_id(name)}/{look}")
            assert response.status_code == 200, name


async def test_stock_client_reads_drawing_schemas_and_subgraphs(server: Server) -> None:
    sdk = await server.sdk()
    own = own_id("subgraph")
    drawing = await sdk.assistants.get_graph(own, xray=True)
    assert "child:inner" in [node["id"] for node in drawing["nodes"]]
    assert (await sdk.assistants.get_schemas(own))["graph_id"] == "subgraph"
    assert list(await sdk.assistants.get_subgraphs(own, namespace="child", recurse=True)) == ["child"]
