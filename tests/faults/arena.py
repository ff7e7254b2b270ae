"""A server on either database with its callers, for attacks on what waits for a person: two agents and three people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from assent.app import policy_of
from assent.identity.model.access import Kind, operator
from assent.review.rows import policies
from assent.settings import Mode
from tests.api.house import Builder, House
from tests.graphs_gated.serving import GRAPHS
from tests.waiting import until

Json = dict[str, Any]


def doubted(item: Json) -> str | None:
    """The grant of the item's call that is in doubt."""
    return next((grant["id"] for grant in item["grants"] if grant["status"] == "started"), None)


@dataclass
class Arena:
    house: House
    log: Path
    agent: httpx.AsyncClient
    other: httpx.AsyncClient
    ana: httpx.AsyncClient
    ben: httpx.AsyncClient

    async def policy(self, document: Any) -> None:
        await self.house.services.policies.put(operator(), document)

    async def thread(self, client: httpx.AsyncClient | None = None, **body: Any) -> str:
        made = await (client or self.agent).post("/threads", json=body)
        assert made.status_code == 200, made.text
        return str(made.json()["thread_id"])

    async def run(
        self, thread: str, graph: str, client: httpx.AsyncClient | None = None, how: str = "/wait", **body: Any
    ) -> httpx.Response:
        return await (client or self.agent).post(
            f"/threads/{thread}/runs{how}", json={"assistant_id": graph, **body}, timeout=30
        )

    async def stopped(self, graph: str = "stopping", client: httpx.AsyncClient | None = None, **given: Any) -> str:
        """A thread that stands before its breakpoint, or asks."""
        return await self.stopped_with(graph, client, input={"log": str(self.log), "tag": "asked", **given})

    async def stopped_with(self, graph: str, client: httpx.AsyncClient | None = None, **body: Any) -> str:
        """The same, after a run that its caller asked for like this."""
        thread, body = await self.thread(client), {"input": {"log": str(self.log), "tag": "asked"}, **body}
        done = await self.run(thread, graph, client, **body)
        assert done.status_code == 200, done.text
        assert (await self.state(thread))["status"] == "interrupted"
        return thread

    async def state(self, thread: str) -> Json:
        body: Json = (await self.ana.get(f"/threads/{thread}")).json()
        return body

    async def rests(self, thread: str) -> Json:
        """The thread, once no run of it is under way and no decision about it."""

        async def resting() -> bool:
            sent = (await self.ana.get("/api/deliveries")).json()["items"]
            under_way = {row["target"] for row in sent if row["status"] in ("pending", "sending")}
            return f"thread:{thread}" not in under_way and (await self.state(thread))["status"] != "busy"

        await until(resting, "the thread does not come to rest")
        return await self.state(thread)

    async def items(self, thread: str, filter: str = "is:pending") -> list[Json]:
        listed = await self.ana.get("/api/inbox/items", params={"filter": f"{filter} thread:{thread}".strip()})
        return [
            (await self.ana.get(f"/api/inbox/items/{pending_item['id']}")).json()
            for pending_item in listed.json()["items"]
        ]

    async def item(self, thread: str) -> Json:
        [item] = await self.items(thread)
        return item

    async def decide(self, item: Json, verb: str, client: httpx.AsyncClient | None = None, **more: Any) -> Any:
        seen = {"revision": item["revision"], "hash": item["hash"]}
        body = {**seen, **({} if "actions" in more else {"verb": verb}), **more}
        return await (client or self.ana).post(f"/api/inbox/items/{item['id']}/decision", json=body)

    async def events(self, item: Json) -> list[tuple[str, str]]:
        told = (await self.ana.get(f"/api/inbox/items/{item['id']}/timeline")).json()
        return [(entry["kind"], entry["actor"]) for entry in told]

    async def actor(self, client: httpx.AsyncClient) -> str:
        return str((await client.post("/threads", json={})).json()["owner"])

    @property
    def effects(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@asynccontextmanager
async def open_arena(folder: Path, database: str, mode: Mode = Mode.SERVE, **more: Any) -> AsyncIterator[Arena]:
    """On an empty database with the newest tables."""
    async with AsyncExitStack() as stack:
        build = Builder(folder, folder / "none", stack)
        key = "0123456789abcdef0123456789abcdef"
        house = await build(mode, **{"config": GRAPHS, "database": database, "secret_key": key, **more})
        yield Arena(
            house,
            folder / "effects",
            house.client(await house.key(Kind.AGENT)),
            house.client(await house.key(Kind.AGENT)),
            house.client(await house.person("ana")),
            house.client(await house.person("ben")),
        )


async def swept(arena: Arena, folder: Path) -> Arena:
    """The same server for another test: its policy as at the start, its effects in another file."""
    policy, source = policy_of(arena.house.settings)
    await arena.house.services.store.write("default", policies.put, policy, source=source, actor="system")
    return replace(arena, log=folder / "effects")
