"""One walk-through over every surface of the inbox, decisions that race over all of them, and another tenant's view."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from assent.client import AsyncInbox
from assent.errors import AlreadyDecided
from assent.identity.model.access import Role
from tests.contract.stores import both_databases
from tests.graphs_gated.serving import make_keys, open_site
from tests.scoreboard import Count, RecordScore

Json = dict[str, Any]
POLICY = {"rules": [{"name": "everything", "then": "ask", "risk": "low"}]}
SEEN = "$id: ID!, $revision: Int!, $hash: String!"
GIVEN = "id: $id, revision: $revision, hash: $hash"


def seen(item: Json) -> Json:
    return {"id": item["id"], "revision": item["revision"], "hash": item["hash"]}


@dataclass
class Site:
    url: str
    agent: str
    person: str

    def http(self, key: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, headers={"x-api-key": key}, timeout=60)

    async def create(self, title: str = "Deploy", tenant_key: str | None = None) -> Json:
        async with self.http(tenant_key or self.agent) as agent:
            made = await agent.post("/api/inbox/items", json={"type": "deploy", "title": title, "payload": {"v": 1}})
        assert made.status_code == 201, made.text
        item: Json = made.json()
        return item

    async def timeline(self, item_id: str) -> list[Json]:
        async with self.http(self.person) as person:
            told: list[Json] = (await person.get(f"/api/inbox/items/{item_id}/timeline")).json()
        return told


# The walk-through: comment, request a revision, resubmit, approve


async def by_rest(site: Site, item: Json) -> None:
    async with site.http(site.person) as person, site.http(site.agent) as agent:
        path, named = f"/api/inbox/items/{item['id']}", {"revision": item["revision"], "hash": item["hash"]}
        await person.post(f"{path}/comments", json={"text": "looking"})
        await person.post(f"{path}/revision-request", json={**named, "notes": "v2 please"})
        revised = (await agent.post(f"{path}/resubmission", json={"payload": {"v": 2}})).json()
        named = {"revision": revised["revision"], "hash": revised["hash"]}
        done = await person.post(f"{path}/decision", json={**named, "verb": "approve", "notes": "fine"})
        assert done.status_code == 200, done.text


async def by_graphql(site: Site, item: Json) -> None:
    async def send(key: str, query: str, **variables: Any) -> Json:
        async with site.http(key) as client:
            body = (await client.post("/graphql", json={"query": query, "variables": variables})).json()
        assert "errors" not in body, body
        data: Json = body["data"]
        return data

    await send(
        site.person, 'mutation($id: ID!) { addInboxItemComment(id: $id, text: "looking") { id } }', id=item["id"]
    )
    back = f'mutation({SEEN}) {{ requestRevision({GIVEN}, notes: "v2 please") {{ id }} }}'
    await send(site.person, back, **seen(item))
    again = "mutation($id: ID!) { resubmitInboxItem(id: $id, input: {payload: {v: 2}}) { id revision hash } }"
    revised = (await send(site.agent, again, id=item["id"]))["resubmitInboxItem"]
    approve = f'mutation({SEEN}) {{ approveInboxItem({GIVEN}, notes: "fine") {{ status }} }}'
    await send(site.person, approve, **seen(revised))


async def by_client(site: Site, item: Json) -> None:
    async with AsyncInbox(site.url, site.person) as person, AsyncInbox(site.url, site.agent) as agent:
        read = await person.get(item["id"])
        await person.comment(item["id"], "looking")
        await person.request_revision(read, "v2 please")
        await person.approve(await agent.resubmit(item["id"], payload={"v": 2}), notes="fine")


async def by_mcp(site: Site, item: Json) -> None:
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx2.AsyncClient(headers={"x-api-key": site.person}, timeout=60))
        tools = Client(streamable_http_client(f"{site.url}/api/mcp", http_client=http))
        person = await stack.enter_async_context(tools)
        agent = await stack.enter_async_context(AsyncInbox(site.url, site.agent))
        await person.call_tool("comment", {"id": item["id"], "text": "looking"})
        await person.call_tool("request_revision", {**seen(item), "notes": "v2 please"})
        revised: Any = await agent.resubmit(item["id"], payload={"v": 2})  # agents resubmit by their client
        done: Any = await person.call_tool("decide", {**seen(revised), "verb": "approve", "notes": "fine"})
        assert not done.is_error, done.content[0].text


async def by_cli(site: Site, item: Json) -> None:
    await assent(site, site.person, "inbox", "comment", item["id"], "looking")
    await assent(site, site.person, "inbox", "request-revision", item["id"], "--notes", "v2 please")
    await assent(site, site.agent, "inbox", "resubmit", item["id"], "--payload", '{"v": 2}')
    await assent(site, site.person, "inbox", "approve", item["id"], "--notes", "fine")


async def assent(site: Site, key: str, *arguments: str) -> None:
    process = await _started(site, key, *arguments)
    out, err = await process.communicate()
    assert process.returncode == 0, (arguments, out, err)


async def _started(site: Site, key: str, *arguments: str) -> Process:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSENT_")}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "assent", *arguments),
        env={**environment, "ASSENT_URL": site.url, "ASSENT_API_KEY": key},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**20,
    )


WALKS: dict[str, Callable[[Site, Json], Awaitable[None]]] = {
    "rest": by_rest,
    "graphql": by_graphql,
    "python": by_client,
    "mcp": by_mcp,
    "cli": by_cli,
}


@pytest.fixture
def site(database: str, folder: Path) -> Iterator[Site]:
    keys = make_keys(database, "ana", role=Role.ADMIN)
    with open_site(folder, database) as opened:
        admin = {"x-api-key": keys["ana"]}
        made = httpx.post(f"{opened.url}/api/keys", json={"kind": "agent", "name": "bot"}, headers=admin, timeout=30)
        put = httpx.put(f"{opened.url}/api/policies", json={"policy": POLICY}, headers=admin, timeout=30)
        assert put.status_code == 200, put.text
        yield Site(opened.url, made.json()["secret"], keys["ana"])


def told(events: list[Json]) -> list[tuple[str, str, str | None]]:
    return [(event["kind"], event["actor"], (event["payload"] or {}).get("notes")) for event in events]


@pytest.mark.scoreboard
@pytest.mark.timeout(600)
@both_databases
async def test_every_surface_ends_in_the_same_timeline_and_races_have_one_winner(
    site: Site, database: str, count: Count, record_score: RecordScore
) -> None:
    timelines, ways = {}, {}
    for name, walk in WALKS.items():
        item = await site.create(f"By {name}")
        await walk(site, item)
        events = await site.timeline(item["id"])
        timelines[name] = told(events)
        ways[name] = {event["payload"]["via"] for event in events if "decision" in event["payload"]}
    assert timelines["rest"] == timelines["graphql"] == timelines["python"] == timelines["mcp"] == timelines["cli"]
    assert [kind for kind, _, _ in timelines["rest"]] == [
        "item.created",
        "item.commented",
        "item.revision_requested",
        "item.resubmitted",
        "item.approved",
    ]
    assert ways == {"rest": {"rest"}, "graphql": {"graphql"}, "python": {"rest"}, "mcp": {"mcp"}, "cli": {"cli"}}
    await _race(site, database, count(full=50, quick=4), record_score)


async def _race(site: Site, database: str, number: int, record_score: RecordScore) -> None:
    items = [await site.create(f"Raced {place}") for place in range(number)]
    racers, started = (_cli_wins, _rest_wins, _graphql_wins, _client_wins, _mcp_wins), asyncio.Event()
    wins = (racer(site, _shuffled(items, place), started) for place, racer in enumerate(racers))
    results = await asyncio.gather(*wins)
    won = Counter(item_id for wins in results for item_id in wins)
    decided = [sum(event["kind"] == "item.approved" for event in await site.timeline(item["id"])) for item in items]
    on = "Postgres" if "postgres" in database else "SQLite"
    record_score(
        f"CLI, REST, GraphQL, Python client and MCP race for {number} items, {on}",
        "one winner each, one audit row each",
        f"{won.total()} winners of {len(racers) * number} decisions: {[len(wins) for wins in results]}",
    )
    assert won == Counter(item["id"] for item in items)
    assert decided == [1] * number


def _shuffled(items: list[Json], seed: int) -> list[Json]:
    return random.Random(seed).sample(items, len(items))


async def _rest_wins(site: Site, items: list[Json], started: asyncio.Event) -> list[str]:
    await started.wait()
    async with site.http(site.person) as person:
        wins = []
        for item in items:
            body = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
            done = await person.post(f"/api/inbox/items/{item['id']}/decision", json=body)
            assert done.status_code in (200, 409), done.text
            wins += [item["id"]] if done.status_code == 200 else []
    return wins


async def _graphql_wins(site: Site, items: list[Json], started: asyncio.Event) -> list[str]:
    await started.wait()
    query = f"mutation({SEEN}) {{ approveInboxItem({GIVEN}) {{ id }} }}"
    async with site.http(site.person) as person:
        wins = []
        for item in items:
            body = (await person.post("/graphql", json={"query": query, "variables": seen(item)})).json()
            assert body["data"] or body["errors"][0]["extensions"]["code"] == "already_decided", body
            wins += [item["id"]] if body["data"] else []
    return wins


async def _client_wins(site: Site, items: list[Json], started: asyncio.Event) -> list[str]:
    await started.wait()
    async with AsyncInbox(site.url, site.person) as person:
        wins = []
        for item in items:
            try:
                wins.append((await person.approve(item))["id"])  # type: ignore[arg-type]
            except AlreadyDecided:
                continue
    return wins


async def _mcp_wins(site: Site, items: list[Json], started: asyncio.Event) -> list[str]:
    await started.wait()
    async with (
        httpx2.AsyncClient(headers={"x-api-key": site.person}, timeout=60) as http,
        Client(streamable_http_client(f"{site.url}/api/mcp", http_client=http)) as person,
    ):
        wins = []
        for item in items:
            done: Any = await person.call_tool("decide", {**seen(item), "verb": "approve"})
            assert not done.is_error or done.content[0].text.startswith("already_decided"), done.content[0].text
            wins += [] if done.is_error else [item["id"]]
    return wins


async def _cli_wins(site: Site, items: list[Json], started: asyncio.Event) -> list[str]:
    """Starts the race with its first decision: the others would decide everything while its process starts."""
    process = await _started(site, site.person, "inbox", "approve", *(item["id"] for item in items), "--json")
    assert process.stdout is not None
    wins = list[str]()
    async for line in process.stdout:
        wins.append(json.loads(line)["id"])
        started.set()
    assert await process.wait() in (0, 6)
    return wins


# Another tenant


@pytest.mark.scoreboard
@pytest.mark.promise("P10")
@pytest.mark.timeout(600)
@both_databases
async def test_another_tenant_learns_nothing_by_any_surface(
    site: Site, database: str, record_score: RecordScore
) -> None:
    marker = "moonlight"
    item = await site.create(f"The {marker} merger")
    async with site.http(site.person) as own:
        await own.post(f"/api/inbox/items/{item['id']}/comments", json={"text": marker})
    keys = await asyncio.to_thread(lambda: make_keys(database, "eve", role=Role.ADMIN, tenant="elsewhere"))
    theirs = Site(site.url, site.agent, keys["eve"])
    seen_by_others = [text async for text in _everything(theirs, item)]
    seen_by_owner = [text async for text in _everything(site, item, decide=False)]
    leaks = [text for text in seen_by_others if marker in text]
    record_score(
        f"another tenant sweeps REST, GraphQL, SSE and MCP, {'Postgres' if 'postgres' in database else 'SQLite'}",
        "0 leaks",
        f"{len(seen_by_others)} requests: {len(leaks)} leaks; the owner sees it in "
        f"{sum(marker in text for text in seen_by_owner)}",
    )
    assert leaks == []
    assert sum(marker in text for text in seen_by_owner) >= 12  # the control
    async with site.http(site.person) as own:
        left = (await own.get(f"/api/inbox/items/{item['id']}")).json()
    assert (left["status"], left["comments"], left["claim"], left["links"]) == ("PENDING", 1, None, [])


async def _everything(site: Site, item: Json, *, decide: bool = True) -> AsyncIterator[str]:
    """What every surface answers about this item. `decide`: also tries to change it."""
    path, named = f"/api/inbox/items/{item['id']}", {"revision": item["revision"], "hash": item["hash"]}
    async with site.http(site.person) as client:
        for below in ("", "/revisions", "/timeline", "/comments"):
            yield (await client.get(f"{path}{below}")).text
        for query in ("", "?filter=moonlight&arguments=true&facets=true", f"?filter=id:{item['id']}"):
            yield (await client.get(f"/api/inbox/items{query}")).text
        for other in ("/api/audit/events", "/api/audit/export", "/api/insights", f"/inbox/{item['id']}", "/inbox"):
            yield (await client.get(other)).text
        for field in _queries(item):
            yield (await client.post("/graphql", json={"query": field})).text
        yield await _streamed(client, "GET", "/api/inbox/events", headers={"Last-Event-ID": "0"})
        subscription = {"query": 'subscription { onInboxItemStatusChanged(after: "0") { item { title } } }'}
        accept = {"accept": "text/event-stream"}
        yield await _streamed(client, "POST", "/graphql", json=subscription, headers=accept)
        for name, arguments in _tools(item).items():
            yield await _called(client, name, arguments)
        if decide:
            for below, body in {"decision": {**named, "verb": "approve"}, "comments": {"text": "x"}}.items():
                yield (await client.post(f"{path}/{below}", json=body)).text
            for field in _mutations(item):
                yield (await client.post("/graphql", json={"query": f"mutation {{ {field} }}"})).text
            for name, arguments in _changes(item).items():
                yield await _called(client, name, arguments)


def _queries(item: Json) -> list[str]:
    details = "{ title description comments { text } timeline { payload } revisions { title } actions { argsText } }"
    return [
        f'{{ inboxItem(id: "{item["id"]}") {details} }}',
        f'{{ inboxItems(filter: "moonlight") {{ items {details} counts {{ pending }} }} }}',
        "{ inboxItems { items { title } } }",
        f'{{ activityLog(itemId: "{item["id"]}") {{ entries {{ payload }} }} }}',
        '{ activityLog(text: "moonlight") { entries { payload } } }',
    ]


def _mutations(item: Json) -> list[str]:
    shown = f'id: "{item["id"]}", revision: {item["revision"]}, hash: "{item["hash"]}"'
    return [
        f"approveInboxItem({shown}) {{ title }}",
        f"rejectInboxItem({shown}) {{ title }}",
        f'requestRevision({shown}, notes: "x") {{ title }}',
        f'decideInboxItem(id: "{item["id"]}", decision: {{revision: 1, hash: "x", verb: APPROVE}}) {{ title }}',
        f'cancelInboxItem(id: "{item["id"]}") {{ title }}',
        f'resubmitInboxItem(id: "{item["id"]}", input: {{title: "x"}}) {{ title }}',
        f'addInboxItemComment(id: "{item["id"]}", text: "x") {{ text }}',
        f'addInboxItemLink(id: "{item["id"]}", threadId: "x") {{ title }}',
        f'removeInboxItemLink(id: "{item["id"]}", threadId: "x") {{ title }}',
    ]


def _tools(item: Json) -> dict[str, Json]:
    return {
        "list_items": {"filter": ""},
        "search_items": {"text": "moonlight"},
        "get_item": {"id": item["id"]},
    }


def _changes(item: Json) -> dict[str, Json]:
    return {
        "claim_item": {"id": item["id"]},
        "comment": {"id": item["id"], "text": "x"},
        "recommend": {**seen(item), "verb": "approve", "reason": "x"},
        "decide": {**seen(item), "verb": "approve"},
        "request_revision": {**seen(item), "notes": "x"},
    }


async def _called(client: httpx.AsyncClient, name: str, arguments: Json) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    return (await client.post("/api/mcp", json=message, headers={"accept": "application/json"})).text


async def _streamed(client: httpx.AsyncClient, method: str, path: str, **options: Any) -> str:
    """What a stream sends of the past; it would go on."""
    received = ""
    try:
        async with asyncio.timeout(1.5), client.stream(method, path, **options) as stream:
            async for text in stream.aiter_text():
                received += text
    except TimeoutError:
        pass
    return received
