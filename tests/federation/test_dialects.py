"""Every way of asking, on every kind of server: the answer of a person arrives in exactly the form that the agent waits
for, and every approved call is made once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from assent.settings import Mode
from tests.api.house import Builder
from tests.federation.conftest import KINDS
from tests.federation.desk import Desk, answered, ask, begun, ended, waits_for
from tests.waiting import until

Json = dict[str, Any]

FLAGS = {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True}
CALL = {"action": "send", "args": {"to": "ana", "copies": 2}}


@dataclass(frozen=True)
class Way:
    """An agent of LangChain that asks about two calls."""

    graph: str
    items: int

    def input(self, log: Path) -> Json:
        calls = [{"name": "ship", "args": {"city": city, "log": str(log)}} for city in ("Bern", "Chur")]
        if self.graph == "deep":
            calls = [{"name": "task", "args": {"description": json.dumps(calls), "subagent_type": "shipper"}}]
        return {"messages": [{"role": "user", "content": json.dumps(calls)}]}


WAYS = [Way("batched", 1), Way("per_call", 2), Way("deep", 1)]
CASES = [
    pytest.param(kind, way, id=f"{way.graph}-{kind}")
    for kind in KINDS
    for way in WAYS
    if (kind, way.graph) != ("langgraphjs", "per_call")  # which LangChain for JavaScript does not have
]


def edit_or_approve(action: Json) -> Json:
    if action["args"]["city"] == "Bern":
        return {"key": action["key"], "verb": "edit", "args": {**action["args"], "city": "Basel"}}
    return {"key": action["key"], "verb": "approve"}


def reject(action: Json) -> Json:
    return {"key": action["key"], "verb": "reject", "message": "too far"}


@pytest.mark.promise("INBOX-02")
@pytest.mark.parametrize(("kind", "way"), CASES)
async def test_agents_of_langchain_get_their_decisions(
    request: pytest.FixtureRequest, build: Builder, tmp_path: Path, kind: str, way: Way
) -> None:
    url: str = request.getfixturevalue(f"{kind}_url")
    desk, log, other = await Desk.at(await build(Mode.DEV)), tmp_path / "log", tmp_path / "other"
    log.touch()
    other.touch()
    shipped, rejected = [await begun(url, way.graph, way.input(file)) for file in (log, other)]
    added = await desk.add(url, graphs=[way.graph])
    assert added["problem"] is None, added
    for thread_id, verdict in ((shipped, edit_or_approve), (rejected, reject)):
        for item in await questions(desk, thread_id, way.items):
            await desk.decide(item, actions=[verdict(action) for action in item["actions"]])
    told = json.dumps(await ended(url, shipped))
    assert sorted(log.read_text().splitlines()) == ["Basel", "Chur"]
    assert all(f"shipped to {city}" in told for city in ("Basel", "Chur"))
    assert "too far" in json.dumps(await ended(url, rejected))
    assert other.read_text() == ""


async def questions(desk: Desk, thread_id: str, number: int) -> list[Json]:
    """The items of a thread with their actions, once there are so many."""

    async def listed() -> list[Json] | None:
        items = [item for item in await desk.items() if item["source"]["remote"]["thread_id"] == thread_id]
        return items if len(items) == number else None

    items: list[Json] = await until(listed, "the questions do not appear")
    return [await desk.item(item["id"]) for item in items]


@pytest.mark.promise("INBOX-02", "INBOX-16")
async def test_own_questions_get_their_answers(build: Builder, server_url: str) -> None:
    """Agent Inbox's requests, and a raw text."""
    desk = await Desk.at(await build(Mode.DEV))
    request = {"action_request": CALL, "config": FLAGS, "description": "**Send** it?"}
    edited = {"action": "send", "args": {"to": "ben", "copies": 3}}
    decisions: list[tuple[Any, Json, Any]] = [
        ("shall I?", {"verb": "respond", "message": "yes"}, "yes"),
        (request, {"verb": "approve"}, [{"type": "accept", "args": CALL}]),
        ([request], {"verb": "edit", "args": edited["args"]}, [{"type": "edit", "args": edited}]),
        (request, {"verb": "respond", "message": "later"}, [{"type": "response", "args": "later"}]),
        (request, {"verb": "ignore"}, [{"type": "ignore", "args": None}]),
    ]
    thread_id = await ask(server_url, *(question for question, _, _ in decisions))
    added = await desk.add(server_url, graphs=["asking"])
    before = set[str]()
    for _, decision, _ in decisions:

        async def asks_next() -> Json | None:
            item = await desk.item_of(added, thread_id)
            return item if item["id"] not in before else None

        item = await desk.item((await until(asks_next, "the next question does not appear"))["id"])
        before.add(item["id"])
        await desk.decide(item, actions=[{"key": item["actions"][0]["key"], **decision}])
    assert await answered(server_url, thread_id) == [answer for _, _, answer in decisions]


async def test_withdrawn_question_ends_its_thread(build: Builder, server_url: str) -> None:
    """Where the way of asking has no word for it."""
    desk = await Desk.at(await build(Mode.DEV))
    thread_id = await ask(server_url, {"free": "form"})
    item = await desk.item_of(await desk.add(server_url, graphs=["asking"]), thread_id)
    withdrawn = await desk.admin.post(f"/api/inbox/items/{item['id']}/cancellation", json={"notes": "not needed"})
    assert withdrawn.status_code == 200, withdrawn.text

    async def over() -> bool:
        return bool((await desk.item(item["id"]))["delivery"]["status"] == "delivered")

    await until(over, "the thread is not ended")
    assert await waits_for(server_url, thread_id) == []
    assert (
        await desk.items(f"is:pending deployment:{item['source']['deployment']} thread:{item['source']['thread_id']}")
        == []
    )
