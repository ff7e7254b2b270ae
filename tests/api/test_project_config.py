"""Fields of langgraph.json that change the server: headers, CORS, switched-off parts, prefix, TTL, documents."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.settings import Mode
from tests.api.house import Builder, House

Json = dict[str, Any]
Open = Callable[..., Awaitable[House]]
TELLING = """
from typing import Any, TypedDict
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

class State(TypedDict, total=False):
    ask: bool
    seen: dict[str, Any]

def tell(state: State, config: RunnableConfig) -> State:
    if state.get("ask"):
        interrupt("which?")
    named = config["configurable"]
    return {"seen": {name: named[name] for name in named if name.startswith(("x-", "auth", "cookie", "user-agent"))}}

graph = StateGraph(State).add_node(tell).add_edge(START, "tell").compile()
"""
ROUTES = """
from fastapi import FastAPI
from pydantic import BaseModel

class Problem(BaseModel):
    cloudy: bool

app = FastAPI()

@app.get("/weather")
async def weather() -> Problem:
    return Problem(cloudy=False)
"""


@pytest.fixture
async def opened(tmp_path: Path, migrated_file: Path) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:
        build = Builder(tmp_path, migrated_file, stack)

        async def with_project(mode: Mode = Mode.DEV, **sections: Any) -> House:
            (tmp_path / "telling.py").write_text(TELLING)
            (tmp_path / "routes.py").write_text(ROUTES)
            document = {"graphs": {"telling": "./telling.py:graph"}, **sections}
            (tmp_path / "langgraph.json").write_text(json.dumps(document))
            return await build(mode, config=tmp_path / "langgraph.json")

        yield with_project


async def seen(client: httpx.AsyncClient, **body: Any) -> Json:
    done = await client.post("/runs/wait", json={"assistant_id": "telling", "input": {}, **body})
    assert done.status_code == 200, done.text
    told: Json = done.json()["seen"]
    return told


SENT = {"x-team-name": "red", "x-team-key": "k", "X-Other": "o", "user-agent": "test", "authorization": "Bearer x"}


async def test_selected_headers_reach_the_configuration_of_runs(opened: Open) -> None:
    rules = {"includes": ["x-team-*", "Auth*", "cookie", "x-api-key"], "excludes": ["*-key"]}
    house = await opened(http={"configurable_headers": rules})
    client = house.client(headers={**SENT, "cookie": "a=b"})
    assert await seen(client) == {"x-team-name": "red"}
    over = {"configurable": {"x-team-name": "forged", "x-mine": 1}}
    assert await seen(client, config=over) == {"x-team-name": "red", "x-mine": 1}
    assert await seen(client, context={"x-team-name": "forged"}) == {"x-team-name": "red"}
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "telling"}}
    told = (await client.post("/mcp", json=rpc)).json()["result"]["structuredContent"]
    assert told["seen"] == {"x-team-name": "red"}


async def test_without_a_rule_no_header_reaches_it(opened: Open) -> None:
    house = await opened()
    assert await seen(house.client(headers=SENT)) == {}


async def test_answer_keeps_the_headers_of_the_run_that_asked(opened: Open) -> None:
    house = await opened(http={"configurable_headers": {"includes": ["x-team-*"]}})
    thread = (await house.client().post("/threads", json={})).json()["thread_id"]
    run = {"assistant_id": "telling", "input": {"ask": True}}
    red, blue = house.client(headers={"x-team-name": "red"}), house.client(headers={"x-team-name": "blue"})
    await red.post(f"/threads/{thread}/runs/wait", json=run)
    answer = {"assistant_id": "telling", "command": {"resume": "this"}}
    done = await blue.post(f"/threads/{thread}/runs/wait", json=answer)
    assert done.json()["seen"] == {"x-team-name": "red"}


async def test_cors_of_the_project_is_added_to_the_settings(opened: Open) -> None:
    cors = {
        "allow_origins": ["https://a.example"],
        "allow_origin_regex": r"https://.*\.b\.example",
        "allow_methods": ["GET", "POST"],
        "expose_headers": ["X-Mine"],
        "max_age": 7,
    }
    house = await opened(Mode.SERVE, http={"cors": cors})
    asks = {"access-control-request-method": "POST"}
    for origin, allowed in (
        ("https://a.example", True),
        ("https://x.b.example", True),
        ("https://c.example", False),
        ("https://x.b.example.evil", False),
    ):
        answer = await house.client(headers={"origin": origin, **asks}).options("/threads")
        assert (answer.headers.get("access-control-allow-origin") == origin) is allowed, origin
        assert "access-control-allow-credentials" not in answer.headers
    allowed_answer = await house.client(headers={"origin": "https://a.example", **asks}).options("/threads")
    assert allowed_answer.headers["access-control-max-age"] == "7"
    assert allowed_answer.headers["access-control-allow-methods"] == "GET, POST"
    keyed = house.client(await house.key(), headers={"origin": "https://a.example"})
    answer = await keyed.post("/threads", json={})
    assert answer.status_code == 200
    assert {"Location", "X-Mine"} <= set(answer.headers["access-control-expose-headers"].split(", "))
    keyless = await house.client(headers={"origin": "https://a.example"}).post("/threads", json={})
    assert keyless.status_code == 401


PROBES = {
    "assistants": ("POST", "/assistants/search"),
    "threads": ("POST", "/threads"),
    "runs": ("POST", "/runs/wait"),
    "store": ("POST", "/store/namespaces"),
    "mcp": ("POST", "/mcp"),
    "a2a": ("GET", "/.well-known/agent-card.json?assistant_id=telling"),
    "meta": ("GET", "/openapi.json"),
}


@pytest.mark.parametrize("part", PROBES)
async def test_disabled_part_is_not_found_and_the_others_are_served(opened: Open, part: str) -> None:
    house = await opened(http={f"disable_{part}": True})
    client = house.client()
    body = {"assistant_id": "telling", "input": {}, "jsonrpc": "2.0", "id": 1, "method": "ping"}
    for name, (method, path) in PROBES.items():
        response = await client.request(method, path, json=body if method == "POST" else None)
        assert response.status_code == (404 if name == part else 200), (name, response.text)
    assert (await client.get("/ok")).status_code == 200


@pytest.mark.parametrize(
    ("part", "off"),
    [("a2a", {"a2a"}), ("store", {"store"}), ("runs", {"crons", "event_streaming"}), ("webhooks", set())],
)
async def test_info_tells_which_parts_are_disabled(opened: Open, part: str, off: set[str]) -> None:
    client = (await opened(http={f"disable_{part}": True})).client()
    flags = (await client.get("/info")).json()["flags"]
    served = {"assistants", "crons", "store", "event_streaming", "mcp", "a2a", "strict_resume"}
    assert {name for name in served if not flags[name]} == off


async def test_disabled_runs_leave_threads_but_no_way_to_start(opened: Open) -> None:
    client = (await opened(http={"disable_runs": True})).client()
    thread = (await client.post("/threads", json={})).json()["thread_id"]
    assert (await client.get(f"/threads/{thread}")).status_code == 200
    for path in ("runs", "runs/wait", "runs/stream", "runs/crons", "commands", "stream/events"):
        answer = await client.post(f"/threads/{thread}/{path}", json={"assistant_id": "telling", "input": {}})
        assert answer.status_code == 404, path


async def test_disabled_webhooks_are_dropped(opened: Open) -> None:
    client = (await opened(http={"disable_webhooks": True})).client()
    run = {"assistant_id": "telling", "input": {}, "webhook": "https://hooks.example/run"}
    thread = (await client.post("/threads", json={})).json()["thread_id"]
    made = (await client.post(f"/threads/{thread}/runs", json=run)).json()
    assert made["kwargs"]["webhook"] is None


async def test_every_route_is_served_below_the_prefix_too(opened: Open) -> None:
    house = await opened(http={"mount_prefix": "/api", "app": "./routes.py:app"})
    client = house.client()
    assert (await client.get("/api/ok")).status_code == 200
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    assert (await client.get(f"/api/threads/{thread}/state")).status_code == 200
    assert (await client.get("/api/weather")).json() == {"cloudy": False}
    assert (await client.get("/api/me")).json()["name"] == "local-agent"  # our own route keeps its path
    assert (await client.get("/apis/ok")).status_code == 404
    stranger = house.client(peer="10.0.0.9")
    assert (await stranger.post("/api/threads", json={})).status_code == 401


async def test_custom_routes_and_security_are_in_the_document(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "auth.py").write_text(
        "from langgraph_sdk import Auth\nauth = Auth()\n@auth.authenticate\nasync def who(headers): return 'me'\n"
    )
    schemes = {"mine": {"type": "http", "scheme": "bearer"}}
    openapi = {"securitySchemes": schemes, "security": [{"mine": []}], "paths": {"/weather": {"GET": []}}}
    house = await opened(http={"app": "./routes.py:app"}, auth={"path": "./auth.py:auth", "openapi": openapi})
    document = (await house.client().get("/openapi.json")).json()
    told = document["paths"]["/weather"]["get"]
    assert told["security"] == []
    assert told["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/CustomProblem")
    assert document["components"]["schemas"]["CustomProblem"]["properties"].keys() == {"cloudy"}
    assert "code" in document["components"]["schemas"]["Problem"]["properties"]  # ours is unchanged
    assert document["components"]["securitySchemes"]["mine"] == schemes["mine"]
    assert document["security"] == [{"mine": []}]
    assert "/mcp" in document["paths"]


async def test_docs_are_a_page_in_development_only(opened: Open) -> None:
    page = await (await opened()).client().get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "<code>/threads/{thread_id}/state</code>" in page.text
    house = await opened(Mode.SERVE)
    assert (await house.client(await house.key()).get("/docs")).status_code == 404


async def test_built_user_interface_is_served(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "entrypoint.js").write_text("render()")
    (tmp_path / "entrypoint.css").write_text("p {}")
    (tmp_path / "secret.js").write_text("no")
    house = await opened(ui={"telling": "./entrypoint.js"})
    client = house.client()
    tags = await client.post("/ui/telling", json={"name": "<weather>'"})
    assert '<script src="/ui/telling/entrypoint.js" onload=' in tags.text
    assert '<link rel="stylesheet" href="/ui/telling/entrypoint.css" />' in tags.text
    assert "<weather>" not in tags.text
    assert "sandbox" in tags.headers["content-security-policy"]
    script = await client.get("/ui/telling/entrypoint.js")
    assert (script.text, script.headers["content-type"].split(";")[0]) == ("render()", "text/javascript")
    for path in ("/ui/telling/secret.js", "/ui/telling/langgraph.json", "/ui/other/entrypoint.js"):
        assert (await client.get(path)).status_code == 404
    assert (await house.client(peer="10.0.0.9").get("/ui/telling/entrypoint.js")).status_code == 401


@pytest.mark.parametrize("strategy", ["delete", "keep_latest"])
async def test_new_threads_expire_by_the_ttl_of_the_project(opened: Open, strategy: str) -> None:
    house = await opened(checkpointer={"ttl": {"strategy": strategy, "default_ttl": 60, "sweep_limit": 2}})
    client = house.client()
    threads = [(await client.post("/threads", json={})).json()["thread_id"] for _ in range(3)]
    run = {"assistant_id": "telling", "input": {}}
    for _ in range(2):
        await client.post(f"/threads/{threads[0]}/runs/wait", json=run)
    created = "0197c5a0-0000-7000-8000-000000000001"
    await client.post(f"/threads/{created}/runs/wait", json={**run, "if_not_exists": "create"})
    shown = (await client.get(f"/threads/{created}", params={"include": "ttl"})).json()["ttl"]
    assert (shown["strategy"], shown["ttl_minutes"]) == (strategy, 60)
    mine = (await client.post("/threads", json={"ttl": {"ttl": 600, "strategy": "delete"}})).json()["thread_id"]
    sweep = house.engine.threads.delete_expired
    assert await sweep() == 0
    house.pass_time(timedelta(minutes=61))
    await sweep()
    after_one = (await client.post("/threads/count", json={})).json()
    await sweep()
    await sweep()
    left = (await client.post("/threads/count", json={})).json()
    assert (after_one, left) == ((3, 1) if strategy == "delete" else (5, 5))
    assert (await client.get(f"/threads/{mine}")).status_code == 200
    if strategy == "keep_latest":
        history = (await client.post(f"/threads/{threads[0]}/history", json={"limit": 100})).json()
        assert len(history) == 1
