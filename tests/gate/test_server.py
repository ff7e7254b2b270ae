"""The gate under the server: people decide in the inbox, and the server's store keeps the grants."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from assent.kernel.store.transaction import Tx
from assent.review.model.grants import Passage
from assent.review.rows import gate
from assent.settings import Mode
from tests.api.conftest import build
from tests.api.house import Builder, House

__all__ = ["build"]

CONFIG = Path(__file__).parent / "graphs" / "langgraph.json"
GATED = ["ours", "batched", "per_call", "plain"]


@dataclass
class Desk:
    """An agent's client, a reviewer's client, and the file in which the tools leave their lines."""

    house: House
    agent: httpx.AsyncClient
    ana: httpx.AsyncClient
    log: Path

    @property
    def ran(self) -> list[str]:
        return [line.split()[0] for line in self.log.read_text().splitlines()] if self.log.exists() else []

    async def start(self, graph: str, *calls: tuple[str, dict[str, Any]]) -> str:
        """A thread that has come to its questions."""
        made = [{"name": name, "args": {**args, "log": str(self.log)}} for name, args in calls]
        return await self.run(graph, {"messages": [{"role": "user", "content": json.dumps(made)}]})

    async def run(self, graph: str, input: dict[str, Any]) -> str:
        thread = (await self.agent.post("/threads", json={})).json()["thread_id"]
        response = await self.agent.post(
            f"/threads/{thread}/runs/wait", json={"assistant_id": graph, "input": input}, timeout=30
        )
        assert response.status_code == 200, response.text
        return str(thread)

    async def items(self, filter: str = "is:pending") -> list[dict[str, Any]]:
        response = await self.ana.get("/api/inbox/items", params={"filter": filter})
        assert response.status_code == 200, response.text
        listed_items: list[dict[str, Any]] = response.json()["items"]
        return [(await self.ana.get(f"/api/inbox/items/{item['id']}")).json() for item in listed_items]

    async def decide(self, item: dict[str, Any], verb: str = "approve", **said: Any) -> None:
        verdicts = [{"key": action["key"], "verb": verb, **said} for action in item["actions"]]
        body = {"revision": item["revision"], "hash": item["hash"], "actions": verdicts}
        response = await self.ana.post(f"/api/inbox/items/{item['id']}/decision", json=body)
        assert response.status_code == 200, response.text

    async def settled(self, thread: str) -> dict[str, Any]:
        """The thread once nothing of it moves any more and no decision is on its way."""
        with anyio.fail_after(20):
            while await self._moves(thread):  # noqa: ASYNC110 - it moves in the server
                await anyio.sleep(0.02)
        body: dict[str, Any] = (await self.agent.get(f"/threads/{thread}")).json()
        return body

    async def _moves(self, thread: str) -> bool:
        if any((item.get("delivery") or {}).get("status") in WAY for item in await self.items("")):
            return True
        runs = (await self.agent.get(f"/threads/{thread}/runs")).json()
        return any(listed_run["status"] in ("pending", "running") for listed_run in runs)


WAY = ("pending", "sending")


@pytest.fixture
async def desk(build: Builder, tmp_path: Path) -> Desk:
    house = await build(Mode.SERVE, config=CONFIG)
    agent, ana = house.client(await house.key()), house.client(await house.person("ana"))
    return Desk(house, agent, ana, tmp_path / f"effects-{uuid.uuid4().hex}")


def said(thread: dict[str, Any]) -> str:
    return json.dumps(thread["values"])


@pytest.mark.promise("P1")
@pytest.mark.parametrize("tool", ["send_email", "post"])
@pytest.mark.parametrize("graph", GATED)
async def test_call_runs_after_approval_by_a_person(desk: Desk, graph: str, tool: str) -> None:
    thread = await desk.start(graph, (tool, {"to": "bob"}))
    [item] = await desk.items()
    assert item["gated"]
    assert desk.ran == []
    await desk.decide(item)
    done = await desk.settled(thread)
    assert (desk.ran, done["status"]) == (["bob"], "idle")
    assert await desk.items() == []
    [item] = await desk.items("")
    assert item["execution"] == "done"


@pytest.mark.promise("P1")
@pytest.mark.parametrize("graph", GATED)
async def test_edited_call_runs_as_edited(desk: Desk, graph: str) -> None:
    thread = await desk.start(graph, ("send_email", {"to": "bob"}))
    [item] = await desk.items()
    await desk.decide(item, "edit", args={"to": "eve", "log": str(desk.log)})
    assert (await desk.settled(thread))["status"] == "idle"
    assert desk.ran == ["eve"]


@pytest.mark.parametrize("graph", GATED)
@pytest.mark.parametrize(("verb", "words"), [("reject", {"message": "no way"}), ("respond", {"message": "I did"})])
async def test_rejected_call_never_runs(desk: Desk, graph: str, verb: str, words: dict[str, str]) -> None:
    thread = await desk.start(graph, ("send_email", {"to": "bob"}))
    [item] = await desk.items()
    await desk.decide(item, verb, **words)
    done = await desk.settled(thread)
    assert (desk.ran, done["status"]) == ([], "idle")
    assert words["message"] in said(done)


async def test_gated_function_of_a_node_runs_after_approval(desk: Desk) -> None:
    thread = await desk.run("node", {"amount": 5, "log": str(desk.log)})
    [item] = await desk.items()
    assert (item["gated"], item["title"]) == (True, "pay")
    await desk.decide(item)
    assert (await desk.settled(thread))["values"]["done"] == "paid 5"
    assert desk.ran == ["5"]


@pytest.mark.promise("HITL-10")
async def test_ungated_tool_runs_and_unnamed_tool_is_gated(desk: Desk) -> None:
    script = json.dumps([{"name": "look_up", "args": {"term": "x"}}])
    freely = await desk.run("ours", {"messages": [{"role": "user", "content": script}]})
    assert "x is known" in said(await desk.settled(freely))
    await desk.run("batched", {"messages": [{"role": "user", "content": script}]})
    [item] = await desk.items()
    assert (item["title"], item["gated"]) == ("look_up", True)


@pytest.mark.promise("P6")
async def test_front_end_of_langchains_middleware_needs_the_key_of_a_person(desk: Desk) -> None:
    thread = await desk.start("drop_in", ("send_email", {"to": "bob"}))
    [item] = await desk.items()
    assert (item["gated"], item["dialect"]) == (True, "hitl_request")
    answer = {"assistant_id": "drop_in", "command": {"resume": {"decisions": [{"type": "approve"}]}}}
    refused = await desk.agent.post(f"/threads/{thread}/runs", json=answer)
    assert (refused.status_code, desk.ran) == (403, [])
    accepted = await desk.ana.post(f"/threads/{thread}/runs", json=answer)
    assert accepted.status_code == 200, accepted.text
    await desk.settled(thread)
    assert desk.ran == ["bob"]


@pytest.mark.promise("P8")
@pytest.mark.parametrize("graph", GATED)
async def test_expired_approval_asks_again(desk: Desk, graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = await desk.start(graph, ("send_email", {"to": "bob"}))
    [item] = await desk.items()
    consume = gate.consume

    def later(tx: Tx, *args: Any) -> Passage:
        """Time passes between the decision and the call."""
        desk.house._store.clock_offset = timedelta(minutes=16)
        return consume(tx, *args)

    monkeypatch.setattr(gate, "consume", later)
    await desk.decide(item)
    await desk.settled(thread)
    assert desk.ran == []
    [again] = await desk.items()
    assert again["id"] != item["id"]


async def test_tool_that_asks_a_question_is_approved_once(desk: Desk) -> None:
    thread = await desk.start("booking", ("book", {"what": "train"}))
    [item] = await desk.items()
    await desk.decide(item)
    await desk.settled(thread)
    [question] = await desk.items()
    assert question["dialect"] == "raw"
    body = {"revision": question["revision"], "hash": question["hash"]}
    verdict = {"key": question["actions"][0]["key"], "verb": "respond", "message": "12A"}
    response = await desk.ana.post(f"/api/inbox/items/{question['id']}/decision", json={**body, "actions": [verdict]})
    assert response.status_code == 200, response.text
    done = await desk.settled(thread)
    assert "booked 12A" in said(done)
    assert desk.ran == ["train"]


async def answer(client: httpx.AsyncClient, desk: Desk, thread: str, value: Any) -> httpx.Response:
    pending = (await desk.agent.get(f"/threads/{thread}")).json()["interrupts"]
    [[question]] = pending.values()
    body = {"assistant_id": "ours", "command": {"resume": {question["id"]: value}}}
    return await client.post(f"/threads/{thread}/runs/wait", json=body, timeout=30)


@pytest.mark.promise("P1")
@pytest.mark.promise("P6")
async def test_an_agent_cannot_answer_for_a_person(desk: Desk) -> None:
    thread = await desk.start("ours", ("send_email", {"to": "bob"}))
    response = await answer(desk.agent, desk, thread, {"type": "approve"})
    assert response.status_code == 403
    await desk.settled(thread)
    assert desk.ran == []
    assert len(await desk.items()) == 1


async def test_a_person_can_answer_by_a_run(desk: Desk) -> None:
    thread = await desk.start("ours", ("send_email", {"to": "bob"}))
    response = await answer(desk.ana, desk, thread, {"type": "approve"})
    assert response.status_code == 200, response.text
    await desk.settled(thread)
    assert desk.ran == ["bob"]
    assert await desk.items() == []


@pytest.mark.promise("P1")
async def test_gate_asks_when_the_server_check_is_missing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that the server lets through by mistake: the gate still asks."""
    from assent.review.decisions import decide as deciding

    thread = await desk.start("ours", ("send_email", {"to": "bob"}))
    monkeypatch.setattr(deciding, "require_right", lambda *_, **__: None)
    response = await answer(desk.agent, desk, thread, {"type": "approve"})
    assert response.status_code == 200, response.text
    await desk.settled(thread)
    assert desk.ran == []
    [again] = await desk.items()
    assert again["gated"]


async def test_notes_of_a_reviewer_reach_the_agent(desk: Desk) -> None:
    thread = await desk.start("ours", ("send_email", {"to": "bob"}))
    [item] = await desk.items()
    assert "bob" in item["summary"], "what it is about, not that something is to be approved"
    body = {"revision": item["revision"], "hash": item["hash"], "notes": "shorter, please"}
    response = await desk.ana.post(f"/api/inbox/items/{item['id']}/revision-request", json=body)
    assert response.status_code == 200, response.text
    done = await desk.settled(thread)
    assert "shorter, please" in said(done)
    assert desk.ran == []


@pytest.mark.promise("REVIEW-12")
@pytest.mark.parametrize("graph", GATED)
async def test_result_of_an_approved_call_tells_the_comments(desk: Desk, graph: str) -> None:
    thread = await desk.start(graph, ("send_email", {"to": "bob"}))
    [item] = await desk.items()
    await desk.ana.post(f"/api/inbox/items/{item['id']}/comments", json={"text": "only this once"})
    await desk.decide(item)
    results = [message for message in (await desk.settled(thread))["values"]["messages"] if message["type"] == "tool"]
    assert desk.ran == ["bob"]
    assert results[-1]["content"].endswith("Comments:\nana: only this once")
    [grant] = (await desk.items(""))[0]["grants"]
    assert "Comments:" not in grant["result"], "the recorded result is the tool's own"
