"""An inbox that follows deployments, and the people and agents around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
from langgraph_sdk import get_client

from assent.identity.model.access import Role
from tests.api.house import House
from tests.waiting import until

Json = dict[str, Any]
PATIENCE = 60.0


@dataclass
class Desk:
    """A house with an administrator's client."""

    house: House
    admin: httpx.AsyncClient

    @classmethod
    async def at(cls, house: House) -> Desk:
        return cls(house, await house.admin())

    async def add(self, url: str, **settings: Any) -> Json:
        response = await self.admin.post("/api/deployments", json={"url": url, **settings})
        assert response.status_code == 201, response.text
        added: Json = response.json()
        return added

    async def deployment(self, deployment_id: str) -> Json:
        shown: Json = (await self.admin.get(f"/api/deployments/{deployment_id}")).json()
        return shown

    async def items(self, filter: str = "is:pending") -> list[Json]:
        listed, cursor = list[Json](), dict[str, str]()
        while True:
            query = {"filter": filter, "limit": "100", **cursor}
            page = (await self.admin.get("/api/inbox/items", params=query)).json()
            listed += page["items"]
            if page["next"] is None:
                return listed
            cursor = {"cursor": page["next"]}

    async def pending(self, deployment: Json) -> int:
        """The number of its open items, by one small request: the inbox under test shares this process."""
        query = {"filter": f"is:pending deployment:{deployment['id']}", "limit": "1"}
        return int((await self.admin.get("/api/inbox/items", params=query)).json()["counts"]["pending"])

    async def newest(self, deployment: Json) -> Json:
        """Its newest open item, with one small request."""
        query = {"filter": f"is:pending deployment:{deployment['id']}", "sort": "-created_at", "limit": "1"}
        newest: Json = (await self.admin.get("/api/inbox/items", params=query)).json()["items"][0]
        return newest

    async def item_of(self, deployment: Json, thread_id: str) -> Json:
        """The open item of a remote thread, once there is one."""

        async def look() -> Json | None:
            for item in await self.items():
                source = item["source"]
                if source["deployment"] == deployment["id"] and source["remote"]["thread_id"] == thread_id:
                    return item
            return None

        found: Json = await until(look, f"no item for {thread_id}")
        return found

    async def item(self, item_id: str) -> Json:
        shown: Json = (await self.admin.get(f"/api/inbox/items/{item_id}")).json()
        return shown

    async def decide(self, item: Json, **decision: Any) -> Json:
        body = {"revision": item["revision"], "hash": item["hash"], **decision}
        response = await self.admin.post(f"/api/inbox/items/{item['id']}/decision", json=body)
        assert response.status_code in (200, 201), response.text
        decided: Json = response.json()
        return decided


async def ask(url: str, *questions: Any, graph: str = "asking", **state: Any) -> str:
    """A thread that waits for answers; its id."""
    return await begun(url, graph, {"questions": list(questions), **state})


async def begun(url: str, graph: str, input: Json, *, webhook: str | None = None) -> str:
    """A thread whose first run is over; its id."""
    async with get_client(url=url, api_key=None) as client:
        thread = await client.threads.create()
        await client.runs.wait(thread["thread_id"], graph, input=input, webhook=webhook)
        return str(thread["thread_id"])


async def ended(url: str, thread_id: str) -> Json:
    """The values of a thread that has come to its end."""
    async with get_client(url=url, api_key=None) as client:

        async def look() -> bool:
            return (await client.threads.get(thread_id))["status"] in ("idle", "error")

        await until(look, f"the thread {thread_id} did not go on")
        state: Any = await client.threads.get_state(thread_id)
        values: Json = state["values"]
        return values


async def waits_for(url: str, thread_id: str) -> list[Any]:
    """What the thread asks now."""
    async with get_client(url=url, api_key=None) as client:
        state: Any = await client.threads.get_state(thread_id)
        return [raised["value"] for task in state["tasks"] for raised in task["interrupts"]]


async def answered(url: str, thread_id: str) -> list[Any]:
    """The answers of a thread that has come to its end."""
    return list((await ended(url, thread_id)).get("answers", []))


async def settled(desk: Desk, item_id: str) -> Json:
    """The item once its decision has arrived, or has failed."""

    async def look() -> Json | None:
        item = await desk.item(item_id)
        return item if item["delivery"]["status"] in ("delivered", "failed") else None

    shown: Json = await until(look, "the decision is still under way", patience=120)
    return shown


__all__ = ["Desk", "Role", "answered", "ask", "begun", "ended", "settled", "waits_for"]
