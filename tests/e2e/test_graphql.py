"""The GraphQL subscription over web sockets and server-sent events: across processes, and only for callers who may."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from tests.contract.stores import migrated_database
from tests.e2e.conftest import fast_folder
from tests.postgres import Cluster
from tests.servers import ServerProcess, dev_server, running

CHANGED = """
    subscription($id: ID, $after: ID) {
        onInboxItemStatusChanged(itemId: $id, after: $after) { kind item { id status } }
    }"""
WITH_ARGUMENTS = CHANGED.replace("id status", "id revision hash actions { argsText }")
MANY = "subscription { " + " ".join(f"a{n}: onInboxItemStatusChanged {{ kind }}" for n in range(50)) + "}"
Json = dict[str, Any]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ServerProcess, ServerProcess | None]]:
    """Two processes on Postgres; on SQLite one, beside which commands write."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            database = f"sqlite:///{fast_folder(tmp_path_factory)}/assent.db"
            yield stack.enter_context(running(dev_server(database))), None
        else:
            cluster: Cluster = request.getfixturevalue("postgres")
            database = stack.enter_context(migrated_database(cluster))
            first = stack.enter_context(running(dev_server(database)))
            yield first, stack.enter_context(running(dev_server(database)))


@pytest.fixture
def server(servers: tuple[ServerProcess, ServerProcess | None]) -> ServerProcess:
    return servers[0]


@pytest.fixture
async def agent(servers: tuple[ServerProcess, ServerProcess | None]) -> AsyncIterator[httpx.AsyncClient]:
    """Calls the other process, where there is one."""
    first, second = servers
    headers = {"x-api-key": first.printed("agent key")}
    async with httpx.AsyncClient(base_url=(second or first).url, headers=headers, timeout=30) as client:
        yield client


async def create(agent: httpx.AsyncClient) -> Json:
    made = await agent.post("/api/inbox/items", json={"type": "deploy", "title": "Deploy"})
    assert made.status_code == 201, made.text
    item: Json = made.json()
    return item


@asynccontextmanager
async def socket(server: ServerProcess, **headers: str) -> AsyncIterator[ClientConnection]:
    async with connect(
        f"{server.url.replace('http', 'ws', 1)}/graphql",
        additional_headers=headers or {"x-api-key": server.printed("agent key")},
        subprotocols=[Subprotocol("graphql-transport-ws")],
    ) as connection:
        await connection.send(json.dumps({"type": "connection_init"}))
        assert json.loads(await connection.recv())["type"] == "connection_ack"
        yield connection


async def subscribe(connection: ClientConnection, query: str = CHANGED, **variables: Any) -> None:
    payload = {"query": query, "variables": variables}
    await connection.send(json.dumps({"id": "1", "type": "subscribe", "payload": payload}))


async def received(connection: ClientConnection) -> Json:
    async with asyncio.timeout(90):
        message: Json = json.loads(await connection.recv())
    return message


async def test_changes_in_another_process_arrive_over_a_web_socket(
    server: ServerProcess, agent: httpx.AsyncClient
) -> None:
    item, kinds = await create(agent), []
    async with socket(server) as connection:
        await subscribe(connection, after="0")
        while "item.cancelled" not in kinds:
            change = (await received(connection))["payload"]["data"]["onInboxItemStatusChanged"]
            if change["item"]["id"] == item["id"]:
                kinds.append(change["kind"])
                await agent.post(f"/api/inbox/items/{item['id']}/cancellation", json={})
    assert kinds == ["item.created", "item.cancelled"]


async def test_changes_of_one_item_arrive_as_server_sent_events(
    server: ServerProcess, agent: httpx.AsyncClient
) -> None:
    await create(agent)
    item, changes = await create(agent), []
    await agent.post(f"/api/inbox/items/{item['id']}/comments", json={"text": "not a change of status"})
    headers = {"x-api-key": server.printed("agent key"), "accept": "text/event-stream"}
    body = {"query": CHANGED, "variables": {"id": item["id"], "after": "0"}}
    async with (
        asyncio.timeout(90),
        httpx.AsyncClient(base_url=server.url, headers=headers, timeout=30) as client,
        client.stream("POST", "/graphql", json=body) as stream,
    ):
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                changes.append(json.loads(line.removeprefix("data: "))["data"]["onInboxItemStatusChanged"])
                if len(changes) == 2:
                    break
                await agent.post(f"/api/inbox/items/{item['id']}/cancellation", json={})
    assert [change["kind"] for change in changes] == ["item.created", "item.cancelled"]
    assert changes[1]["item"] == {"id": item["id"], "status": "CANCELLED"}


@pytest.mark.promise("P5")
async def test_arguments_in_a_subscription_belong_to_the_hash_beside_them(
    server: ServerProcess, agent: httpx.AsyncClient
) -> None:
    reviewer = {"x-api-key": server.printed("reviewer key")}
    made = await agent.post("/api/inbox/items", json={"type": "pay", "title": "Pay", "actions": [pay(5)]})
    path, changes = f"/api/inbox/items/{made.json()['id']}", list[Json]()
    async with (
        socket(server, **reviewer) as connection,
        httpx.AsyncClient(base_url=server.url, headers=reviewer) as ana,
    ):
        await subscribe(connection, WITH_ARGUMENTS, id=made.json()["id"], after="0")
        while len(changes) < 3:
            changes.append((await received(connection))["payload"]["data"]["onInboxItemStatusChanged"])
            if len(changes) == 1:
                seen = {name: changes[0]["item"][name] for name in ("revision", "hash")}
                await ana.post(f"{path}/revision-request", json={**seen, "notes": "less"})
                await agent.post(f"{path}/resubmission", json={"actions": [pay(999)]})
        current = (await ana.get(path)).json()
    shown = changes[-1]["item"]
    assert (shown["revision"], shown["hash"]) == (2, current["hash"])
    assert [json.loads(action["argsText"]) for action in shown["actions"]] == [{"cents": 999}]


def pay(cents: int) -> Json:
    return {"name": "pay", "args": {"cents": cents}}


# Who may open one


@pytest.fixture(scope="module")
def signed_in(servers: tuple[ServerProcess, ServerProcess | None]) -> str:
    with httpx.Client(base_url=servers[0].url) as browser:
        answer = browser.post("/api/session", json={"credential": servers[0].printed("reviewer key")})
        assert answer.status_code == 200, answer.text
        return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


async def test_a_cookie_opens_a_socket_from_our_own_page_only(server: ServerProcess, signed_in: str) -> None:
    async with socket(server, Cookie=signed_in, Origin=server.url) as connection:
        assert connection.subprotocol == "graphql-transport-ws"
    for origin in ({}, {"Origin": "https://evil.example"}):
        with pytest.raises(InvalidStatus) as refused:
            async with socket(server, Cookie=signed_in, **origin):
                raise AssertionError("the socket was opened")
        assert refused.value.response.status_code == 403


async def test_a_revoked_key_ends_its_subscription(server: ServerProcess, agent: httpx.AsyncClient) -> None:
    async with httpx.AsyncClient(base_url=server.url, headers={"x-api-key": server.printed("reviewer key")}) as admin:
        made = (await admin.post("/api/keys", json={"kind": "agent", "name": "watching"})).json()
        async with socket(server, **{"x-api-key": made["secret"]}) as connection:
            await create(agent)
            await subscribe(connection, after="0")
            assert (await received(connection))["type"] == "next"
            assert (await admin.delete(f"/api/keys/{made['key']['id']}")).status_code == 200
            while (await received(connection))["type"] != "complete":
                pass


@pytest.mark.promise("P10")
async def test_a_socket_of_a_revoked_key_opens_no_subscription(server: ServerProcess, agent: httpx.AsyncClient) -> None:
    async with httpx.AsyncClient(base_url=server.url, headers={"x-api-key": server.printed("reviewer key")}) as admin:
        made = (await admin.post("/api/keys", json={"kind": "agent", "name": "watching"})).json()
        async with socket(server, **{"x-api-key": made["secret"]}) as connection:
            assert (await admin.delete(f"/api/keys/{made['key']['id']}")).status_code == 200
            later = await create(agent)
            await subscribe(connection, WITH_ARGUMENTS, id=later["id"], after="0")
            answer = await received(connection)
    assert answer["type"] == "error", "changes from before are sent at once"
    assert answer["payload"][0]["extensions"]["code"] == "unauthenticated"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{ inboxItems { next } }", "invalid_request"),
        ('mutation { cancelInboxItem(id: "x") { id } }', "invalid_request"),
        (
            "subscription { " + " ".join(f"a{n}: onInboxItemStatusChanged {{ kind }}" for n in range(50)) + "}",
            "invalid_request",
        ),
    ],
)
async def test_a_socket_carries_subscriptions_within_the_limits_only(
    server: ServerProcess, query: str, code: str
) -> None:
    async with socket(server) as connection:
        await subscribe(connection, query)
        answer = await received(connection)
    assert answer["type"] == "error"
    assert answer["payload"][0]["extensions"]["code"] == code


async def test_an_oversized_message_closes_the_socket(server: ServerProcess) -> None:
    async with socket(server) as connection:
        await subscribe(connection, "{" + "a " * 100_000 + "}")
        with pytest.raises(ConnectionClosed):
            await received(connection)


async def test_messages_beyond_the_rate_limit_close_the_socket(tmp_path: Path) -> None:
    with running(dev_server(f"sqlite:///{tmp_path}/assent.db", ASSENT_RATE_LIMIT="20")) as limited:
        async with socket(limited) as connection:
            with pytest.raises(ConnectionClosed) as closed:
                await ping(connection, times=1_000)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4429


async def ping(connection: ClientConnection, *, times: int) -> None:
    for _ in range(times):
        await connection.send(json.dumps({"type": "ping"}))
        await received(connection)
