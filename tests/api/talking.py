"""A talk with an assistant that asks by script, over HTTP without a socket."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from assent.settings import Mode
from tests.api.house import Builder, House

GRAPHS = Path(__file__).parents[1] / "graphs_assistant" / "langgraph.json"
SECRET_KEY = "0123456789abcdef0123456789abcdef"
Body = dict[str, Any]


@dataclass
class Talk:
    """One thread with the assistant, as its person has it."""

    house: House
    client: httpx.AsyncClient
    agent: httpx.AsyncClient
    thread: str

    async def run(self, text: str, **more: Any) -> httpx.Response:
        return await self.client.post("/run", json={"thread_id": self.thread, "user_request": text, **more})

    async def resume(self, **answer: Any) -> httpx.Response:
        return await self.client.post("/resume", json={"thread_id": self.thread, **answer})

    async def asked(self, text: str) -> Body:
        """What the assistant asks when it hears this."""
        response = await self.run(text)
        assert response.status_code == 202, response.text
        action: Body = response.json()["pending_action"]
        return action

    async def items(self, filter: str = "is:pending") -> list[Body]:
        response = await self.client.get("/api/inbox/items", params={"filter": filter})
        listed: list[Body] = response.json()["items"]
        return listed

    async def state(self) -> Body:
        query = {"metadata": {"assistant_thread_id": self.thread}}
        [thread] = (await self.client.post("/threads/search", json=query)).json()
        state: Body = thread
        return state

    async def done(self) -> list[Any]:
        """What was carried out so far."""
        done_calls: list[Any] = ((await self.state())["values"] or {}).get("done", [])
        return done_calls

    async def runs(self) -> int:
        thread_id = (await self.state())["thread_id"]
        return len((await self.client.get(f"/threads/{thread_id}/runs")).json())


@pytest.fixture(scope="module")
async def houses(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> AsyncIterator[dict[Mode, House]]:
    """Built once and swept for each test."""
    async with AsyncExitStack() as stack:
        builder = Builder(tmp_path_factory.mktemp("assistant"), migrated_file, stack)
        yield {
            mode: await builder(mode, config=GRAPHS, secret_key=SECRET_KEY, assistant="scripted")
            for mode in (Mode.SERVE, Mode.DEMO)
        }


@pytest.fixture
async def house(houses: dict[Mode, House]) -> House:
    await houses[Mode.SERVE].sweep()
    return houses[Mode.SERVE]


@pytest.fixture
async def talk(house: House) -> AsyncIterator[Talk]:
    person, agent = await house.person("ana"), await house.key()
    async with house.client(person) as client, house.client(agent) as bot:
        yield Talk(house, client, bot, f"my thread / {uuid4()}")


@pytest.fixture
async def demo(houses: dict[Mode, House]) -> House:
    house = houses[Mode.DEMO]
    await house.sweep()
    await house.services.onboarding.welcome()
    return house


def approvals(action: Body, *said: Body) -> list[Body]:
    return [
        {"call_id": call["call_id"], **tool_call} for call, tool_call in zip(action["tool_calls"], said, strict=True)
    ]


def responses(action: Body, *said: str) -> list[Body]:
    return [
        {"call_id": clarification["call_id"], "response": text}
        for clarification, text in zip(action["clarifications"], said, strict=True)
    ]


YES: Body = {"approved": True}
NO: Body = {"approved": False, "feedback": "too late"}
