"""A server with its two callers: an agent that runs graphs, and a person who decides."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.kinds.cases import Case, Json
from tests.servers import ServerProcess
from tests.waiting import until


class Office:
    def __init__(self, server: ServerProcess) -> None:
        self.url = server.url
        self.agent_key, self.person_key = server.printed("agent key"), server.printed("reviewer key")
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.agent, self.person = [await self._client(key) for key in (self.agent_key, self.person_key)]
        headers = {"x-api-key": self.person_key}
        made = httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False, timeout=60)
        self.http = await self._stack.enter_async_context(made)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def run(self, case: Case, log: Path) -> str:
        """Runs the graph up to its questions; returns the thread."""
        thread = (await self.agent.threads.create())["thread_id"]
        await self.agent.runs.wait(thread, case.graph, input=case.input(log))
        return thread

    async def items(self, thread: str) -> list[Json]:
        """What waits, in the order of the orders."""
        listed = await self.http.get("/api/inbox/items", params={"filter": f"is:pending thread:{thread}"})
        items_in_full = [
            (await self.http.get(f"/api/inbox/items/{item['id']}")).json() for item in listed.json()["items"]
        ]
        return sorted(items_in_full, key=lambda item: str(item["actions"]))

    async def decide(self, item: Json, actions: list[Json]) -> None:
        body = {"revision": item["revision"], "hash": item["hash"], "actions": actions}
        decided = await self.http.post(f"/api/inbox/items/{item['id']}/decision", json=body)
        assert decided.status_code == 200, decided.text

    async def failed(self, thread: str) -> None:
        """Waits until the thread has failed."""
        await until(lambda: self._is(thread, "error"), f"thread {thread} does not fail")

    async def ended(self, thread: str) -> Json:
        """The values of the thread, once it has come to its end."""
        await until(lambda: self._is(thread, "idle"), f"thread {thread} does not come to its end")
        state: Any = await self.agent.threads.get_state(thread)
        values: Json = state["values"]
        return values

    async def _is(self, thread: str, status: str) -> bool:
        response = await self.agent.threads.get(thread)
        assert response["status"] in (status, "busy", "interrupted"), response
        return response["status"] == status

    async def _client(self, key: str) -> LangGraphClient:
        client = get_client(url=self.url, api_key=key)
        self._stack.push_async_callback(client.aclose)
        return client
