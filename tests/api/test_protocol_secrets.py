"""GraphQL, MCP, A2A and event streams hide the secrets of a call as the routes of REST do (test_secrets.py)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from graphql import GraphQLObjectType, get_named_type
from starlette.types import Message

from assent.surfaces.graphql.schema import types
from tests.api.house import House, call
from tests.api.test_secrets import HIDES, SHOWS, Scene, decided, house, leaks, scene
from tests.waiting import until

__all__ = ["house"]

pytestmark = pytest.mark.promise("P10")

GRAPH = "gated"
CHANNELS = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"]
DEPTH = 4


def selection(name: str, depth: int = DEPTH) -> str:
    """All fields of the type, and of the types in it."""
    named = types().type_map[name]
    assert isinstance(named, GraphQLObjectType)
    fields = {field: get_named_type(part.type) for field, part in named.fields.items()}
    inner = {field: type.name for field, type in fields.items() if isinstance(type, GraphQLObjectType)}
    plain = [field for field in fields if field not in inner]
    deep = [f"{field} {selection(type, depth - 1)}" for field, type in inner.items()] if depth else []
    return f"{{ {' '.join([*plain, *deep])} }}"


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return rpc("tools/call", name=name, arguments=arguments)


def requests(place: Scene) -> Iterator[tuple[str, dict[str, Any]]]:
    """What reads an item or a thread."""
    item, thread = f'"{place.item}"', f"/threads/{place.thread}"
    yield "/graphql", {"query": f"{{ inboxItem(id: {item}) {selection('InboxItem')} }}"}
    yield "/graphql", {"query": f"{{ inboxItems(first: 5) {selection('InboxItemPage')} }}"}
    yield "/graphql", {"query": f"{{ activityLog(itemId: {item}) {selection('ActivityPage')} }}"}
    yield "/api/mcp", tool("get_item", id=place.item)
    yield "/api/mcp", tool("list_items", filter="")
    yield "/api/mcp", tool("search_items", text="log_in")
    task = f"{place.thread}:{place.run}"
    yield f"/a2a/{GRAPH}", rpc("tasks/get", id=task)
    yield f"/a2a/{GRAPH}", rpc("GetTask", id=task)
    yield f"/a2a/{GRAPH}", rpc("ListTasks", contextId=place.thread, includeArtifacts=True)
    yield f"/a2a/{GRAPH}", rpc("tasks/resubscribe", id=task)
    yield f"{thread}/commands", {"id": 1, "method": "run.start", "params": {"assistant_id": "batched"}}


async def read(place: Scene) -> dict[tuple[str, str], str]:
    """The answers by reader and request."""
    answers = {}
    for path, body in requests(place):
        for who, client in place.everyone.items():
            answer = await client.post(path, json=body)
            assert answer.status_code < 500, (who, path, answer.text)
            assert '"code":"invalid_request"' not in answer.text, (path, answer.text)
            answers[who, f"{path} {json.dumps(body)}"] = answer.text
    for who, client in place.everyone.items():
        answers[who, "events"] = await heard(place, client)
    return answers


async def heard(place: Scene, client: httpx.AsyncClient) -> str:
    """The event stream of the thread, up to its question."""
    received, gone = bytearray(), asyncio.Event()
    body = json.dumps({"channels": CHANNELS}).encode()
    incoming: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if incoming:
            return incoming.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def app(scope: Any, _: Any, __: Any) -> None:
        async def send(message: Message) -> None:
            received.extend(message.get("body", b""))

        await place.office.house.app(scope, receive, send)

    async def is_asked() -> bool:
        return b"input.requested" in received

    headers = {"x-api-key": client.headers["x-api-key"], "content-type": "application/json"}
    streaming = asyncio.create_task(call(app, "POST", f"/threads/{place.thread}/stream/events", headers))  # type: ignore[arg-type]
    await until(is_asked)
    gone.set()
    await streaming
    return received.decode()


async def test_no_protocol_shows_a_secret_to_callers_without_the_right(house: House) -> None:
    async with scene(house, HIDES, GRAPH) as place:
        before = await read(place)
        assert not [reader for reader, text in before.items() if leaks(text)]
        await decided(place)
        after = await read(place)
        assert not [reader for reader, text in after.items() if leaks(text)]


async def test_control_value_unmasked_by_a_policy_is_shown_by_the_same_requests(house: House) -> None:
    async with scene(house, SHOWS, GRAPH) as place:
        shown = {path.partition(" ")[0] for (_, path), text in (await read(place)).items() if leaks(text)}
        assert shown == {"/graphql", "/api/mcp", f"/a2a/{GRAPH}", f"/threads/{place.thread}/commands", "events"}
