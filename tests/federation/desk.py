"""An inbox that follows deployments, and the people and agents around it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
from langgraph_sdk import get_client

from assent.identity.model.access import Role
from tests.api.house import House

Json = dict[str, Any]
PATIENCE = 30.0


async def until(condition: Callable[[], Awaitable[Any]], complaint: str, *, patience: float = PATIENCE) -> Any:
    """The first true result of the condition."""
    deadline = time.monotonic() + patience
    while True:
        if result := await condition():
            return result
        assert time.monotonic() < deadline, complaint
        await asyncio.sleep(0.02)


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
    async with get_client(url=url, api_key=None) as client:
        thread = await client.threads.create()
        given = {"questions": list(questions), **state}
        await client.runs.wait(thread["thread_id"], graph, input=given)
        return str(thread["thread_id"])


async def answered(url: str, thread_id: str) -> list[Any]:
    """The answers of a thread that has come to its end."""
    async with get_client(url=url, api_key=None) as client:

        async def look() -> Json | None:
            thread: Any = await client.threads.get(thread_id)
            return thread if thread["status"] in ("idle", "error") else None

        thread = await until(look, f"the thread {thread_id} did not go on")
        values: Json = thread["values"]
        return list(values.get("answers", []))


__all__ = ["Desk", "Role", "answered", "ask", "until"]
