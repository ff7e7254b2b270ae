"""An office for tests of the inbox: the whole app over graphs that ask, an agent that runs them, and people."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from assent.identity.model.access import Role, operator
from assent.settings import Mode
from tests.api.house import Builder, House
from tests.waiting import until

GRAPHS = Path(__file__).parents[1] / "graphs_inbox" / "langgraph.json"
SECRET_KEY = "0123456789abcdef0123456789abcdef"
PATIENCE = 60.0
Item = dict[str, Any]


def seen(item: Item) -> dict[str, Any]:
    """Names the item and the revision that is shown, for a standing approval."""
    return {"item_id": item["id"], "revision": item["revision"], "hash": item["hash"]}


@dataclass
class Office:
    house: House
    agent: httpx.AsyncClient
    ana: httpx.AsyncClient
    ben: httpx.AsyncClient

    # What agents do

    async def thread(self, client: httpx.AsyncClient | None = None) -> str:
        made = await (client or self.agent).post("/threads", json={})
        assert made.status_code == 200, made.text
        return str(made.json()["thread_id"])

    async def run(
        self,
        graph: str,
        given: Any = None,
        *,
        thread: str | None = None,
        client: httpx.AsyncClient | None = None,
        **more: Any,
    ) -> str:
        """Runs a graph until it ends or asks; returns its thread."""
        client = client or self.agent
        thread = thread or await self.thread(client)
        done = await client.post(f"/threads/{thread}/runs/wait", json={"assistant_id": graph, "input": given, **more})
        assert done.status_code == 200, done.text
        return thread

    async def answer(
        self, thread: str, graph: str, resume: Any, client: httpx.AsyncClient | None = None, **more: Any
    ) -> httpx.Response:
        """As a stock client answers."""
        body = {"assistant_id": graph, "command": {"resume": resume}, **more}
        return await (client or self.agent).post(f"/threads/{thread}/runs/wait", json=body)

    async def request(self, client: httpx.AsyncClient | None = None, **said: Any) -> Item:
        """An item by request, not by an interrupt."""
        body = {"type": "config_change", "title": "Raise the limit", "payload": {"limit": 5}, **said}
        made = await (client or self.agent).post("/api/inbox/items", json=body)
        assert made.status_code == 201, made.text
        found: Item = made.json()
        return found

    # What people see and do

    async def page(self, filter: str = "", client: httpx.AsyncClient | None = None, **query: Any) -> dict[str, Any]:
        response = await (client or self.ana).get("/api/inbox/items", params={"filter": filter, **query})
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    async def items(self, filter: str = "is:pending", **query: Any) -> list[Item]:
        listed_items: list[Item] = (await self.page(filter, **query))["items"]
        return listed_items

    async def asked(self, graph: str, given: Any = None, **more: Any) -> Item:
        """Runs a graph, and the one item that waits for it then."""
        thread = await self.run(graph, given, **more)
        [item] = await self.items(f"is:pending thread:{thread}")
        return await self.get(item["id"])

    async def get(self, item_id: str, client: httpx.AsyncClient | None = None) -> Item:
        response = await (client or self.ana).get(f"/api/inbox/items/{item_id}")
        assert response.status_code == 200, response.text
        body: Item = response.json()
        return body

    async def post(
        self, item: Item, what: str, client: httpx.AsyncClient | None = None, *, key: str | None = None, **body: Any
    ) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        return await (client or self.ana).post(f"/api/inbox/items/{item['id']}/{what}", json=body, headers=headers)

    async def decide(
        self,
        item: Item,
        verb: str | None = None,
        client: httpx.AsyncClient | None = None,
        *,
        key: str | None = None,
        **body: Any,
    ) -> httpx.Response:
        seen = {"revision": item["revision"], "hash": item["hash"]}
        said = {} if verb is None else {"verb": verb}
        return await self.post(item, "decision", client, key=key, **{**seen, **said, **body})

    async def decided(self, item: Item, verb: str | None = None, **more: Any) -> Item:
        response = await self.decide(item, verb, **more)
        assert response.status_code == 200, response.text
        body: Item = response.json()
        return body

    async def ask_revision(self, item: Item, notes: str = "shorter, please", **more: Any) -> httpx.Response:
        seen = {"revision": item["revision"], "hash": item["hash"]}
        return await self.post(item, "revision-request", **{**seen, "notes": notes, **more})

    async def kinds(self, item_id: str) -> list[str]:
        told = (await self.ana.get(f"/api/inbox/items/{item_id}/timeline")).json()
        return [entry["kind"] for entry in told]

    # What comes of it

    async def state(self, thread: str) -> dict[str, Any]:
        body: dict[str, Any] = (await self.ana.get(f"/threads/{thread}")).json()
        return body

    async def rests(self, thread: str, *, status: str | None = None) -> dict[str, Any]:
        """The thread, as soon as nothing runs on it and nothing is on its way to it."""

        async def resting() -> dict[str, Any] | None:
            sent = (await self.ana.get("/api/deliveries")).json()["items"]
            thread_state = await self.state(thread)
            under_way = {row["target"] for row in sent if row["status"] in ("pending", "sending")}
            busy = thread_state["status"] == "busy" or f"thread:{thread}" in under_way
            return None if busy or status not in (None, thread_state["status"]) else thread_state

        resting_thread: dict[str, Any] = await until(resting)
        return resting_thread

    async def values(self, thread: str) -> Any:
        return (await self.rests(thread))["values"]

    async def policy(self, document: Any, tenant: str = "default") -> None:
        await self.house.services.policies.put(operator(tenant), document)

    async def verified(self, tenant: str = "default") -> None:
        """The timeline holds together."""
        verdict = await self.house.services.audit.verify(operator(tenant))
        assert verdict.breaks == []


async def open_office(build: Builder, mode: Mode = Mode.SERVE, **settings: Any) -> Office:
    house = await build(mode, config=GRAPHS, secret_key=SECRET_KEY, **settings)
    return await staff(house)


async def staff(house: House, tenant: str = "default") -> Office:
    return Office(
        house,
        house.client(await house.key(tenant=tenant)),
        house.client(await house.person("ana", Role.REVIEWER, tenant=tenant)),
        house.client(await house.person("ben", Role.REVIEWER, tenant=tenant)),
    )


def problem(response: httpx.Response, status: int, code: str) -> Mapping[str, Any]:
    """The body of a refusal, which is the one that is expected."""
    assert response.status_code == status, response.text
    body: dict[str, Any] = response.json()
    assert body["code"] == code, response.text
    return body


def script(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """The input that makes the scripted model call these tools in one turn."""
    return {
        "messages": [{"role": "user", "content": json.dumps([{"name": name, "args": args} for name, args in calls])}]
    }


def email(body: str = "hello", log: Path | None = None) -> tuple[str, dict[str, Any]]:
    return "send_email", {"to": "a@b.c", "body": body, **({"log": str(log)} if log else {})}
