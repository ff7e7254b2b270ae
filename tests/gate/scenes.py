"""An agent whose gate keeps its records in some place, and a person who decides there: one scene for all places."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import httpx
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from assent import ApprovalMiddleware, LocalInbox, RemoteInbox, current_grant
from assent.gate.elsewhere import wire
from assent.gate.records import Keeper
from tests.gate.desk import asked, script
from tests.graphs.agents import ScriptedModel

SEND = ("send", {"to": "bob"})


class Crash(BaseException):
    """Nothing that anybody handles."""


class Scene(ABC):
    """`ran` has the effects, with the grant of each. `crashes`: the next call dies in its middle; `crashes_after`:
    right after its result was recorded."""

    def __init__(self, keeper: Keeper, thread_id: str, **gate: Any) -> None:
        self.keeper = keeper
        self.ran: list[Any] = []
        self.crashes = self.crashes_after = False
        self.thread_id = thread_id
        self.config: Any = {"configurable": {"thread_id": thread_id}}
        self.agent: Any = create_agent(
            ScriptedModel(),
            [self.send, self.book],
            middleware=[_Crashing(self), ApprovalMiddleware(inbox=keeper, **gate)],
            checkpointer=InMemorySaver(),
        )

    def send(self, to: str) -> str:
        """Sends."""
        grant = current_grant()
        self.ran.append((to, grant and grant.id))
        if self.crashes:
            raise Crash
        return f"sent to {to}"

    async def book(self, what: str) -> str:
        """Books."""
        self.ran.append(f"{what} {interrupt('which seat?')}")
        return "booked"

    @property
    def effects(self) -> list[Any]:
        return [effect[0] if isinstance(effect, tuple) else effect for effect in self.ran]

    async def ask(self, call: Any = SEND) -> Any:
        return await self.invoke(script(call))

    async def invoke(self, input: Any) -> Any:
        return await self.agent.ainvoke(input, self.config, durability="sync")

    async def crash(self, input: Any) -> None:
        try:
            await self.invoke(input)
        except Crash:
            self.crashes = self.crashes_after = False
            return
        raise AssertionError("it did not crash")

    async def said(self, input: Any = None) -> str:
        """The result of the tool that the model reads, after the graph was resumed."""
        result = await self.invoke(input)
        assert not asked(result), asked(result)
        [message] = [message for message in result["messages"] if isinstance(message, ToolMessage)]
        return str(message.content)

    @abstractmethod
    async def decide(self, verb: str = "approve", **said: Any) -> None:
        """A person decides about the only open question."""

    @abstractmethod
    async def settle(self, outcome: str) -> None:
        """A person settles the only call in doubt."""

    @abstractmethod
    async def execution(self) -> str | None:
        """The progress of the latest item."""


class _Crashing(AgentMiddleware[Any, Any, Any]):
    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene

    async def awrap_tool_call(self, request: Any, handler: Callable[..., Any]) -> Any:
        result = await handler(request)
        if self._scene.crashes_after:
            raise Crash
        return result


class LocalScene(Scene):
    keeper: LocalInbox

    async def decide(self, verb: Any = "approve", **said: Any) -> None:
        [item] = self.keeper.items()
        self.keeper.decide(item.id, verb, revision=item.revision, hash=item.hash, by="ana", **said)

    async def settle(self, outcome: Any) -> None:
        item = self.keeper.items(None)[-1]
        self.keeper.settle(item.id, outcome, by="ana", grant_id=item.grant_id)

    async def execution(self) -> str | None:
        return self.keeper.items(None)[-1].execution


class RemoteScene(Scene):
    """The gate of a process elsewhere; the person has a key of their own."""

    keeper: RemoteInbox

    def __init__(self, url: str, agent_key: str, person_key: str, thread_id: str, **gate: Any) -> None:
        super().__init__(RemoteInbox(url, agent_key, deployment="scene"), thread_id, **gate)
        self.url = url
        self.person = httpx.Client(base_url=url, headers={"x-api-key": person_key}, timeout=30)
        self.items: list[str] = []

    def close(self) -> None:
        self.person.close()
        self.keeper.close()

    async def invoke(self, input: Any) -> Any:
        result = await super().invoke(input)
        self.items += [item for raised in result.get("__interrupt__", ()) if (item := wire.item_of(raised))]
        return result

    def item(self) -> dict[str, Any]:
        item: dict[str, Any] = self.person.get(f"/api/inbox/items/{self.items[-1]}").json()
        return item

    async def decide(self, verb: str = "approve", **said: Any) -> None:
        item = self.item()
        seen = {"revision": item["revision"], "hash": item["hash"]}
        verdict = {"key": item["actions"][0]["key"], "verb": verb, **said}
        response = self.person.post(f"/api/inbox/items/{item['id']}/decision", json={**seen, "actions": [verdict]})
        assert response.status_code == 200, response.text

    async def settle(self, outcome: str) -> None:
        response = self.person.post(f"/api/inbox/items/{self.items[-1]}/in-doubt", json={"outcome": outcome})
        assert response.status_code == 200, response.text

    async def execution(self) -> str | None:
        execution: str | None = self.item()["execution"]
        return execution


def raw(result: Any) -> Command[Any]:
    """An approval that comes from no person."""
    return Command(resume={interrupt.id: {"type": "approve"} for interrupt in result["__interrupt__"]})
