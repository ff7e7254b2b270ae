"""A server that is killed in the middle of an approved call: after its restart the call is in doubt, not made again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.command import execute
from tests.servers import ServerProcess, dev_server
from tests.waiting import wait_until

CONFIG = Path(__file__).parent / "graphs" / "langgraph.json"


class Office:
    """An agent and a reviewer at a real server."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "effects"
        self.database = f"sqlite:///{folder}/assent.db"
        self.server: ServerProcess = dev_server(self.database, config=CONFIG)
        self.server.start()
        self.keys = {name: self.server.printed(f"{name} key") for name in ("agent", "reviewer")}

    @property
    def effects(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def call(self, who: str, method: str, path: str, status: int = 200, **body: Any) -> Any:
        with httpx.Client(base_url=self.server.url, headers={"x-api-key": self.keys[who]}, timeout=30) as http:
            response = http.request(method, path, json=body or None)
            assert response.status_code == status, response.text
            return response.json()

    def start(self, graph: str, tool: str, die: str) -> str:
        thread = self.call("agent", "POST", "/threads", metadata={})["thread_id"]
        input = self.script(tool, die)
        self.call("agent", "POST", f"/threads/{thread}/runs/wait", assistant_id=graph, input=input)
        return str(thread)

    def script(self, tool: str, die: str) -> dict[str, Any]:
        calls = json.dumps([{"name": tool, "args": {"to": "bob", "log": str(self.log), "die": die}}])
        return {"messages": [{"role": "user", "content": calls}]}

    def put_policy(self, text: str) -> None:
        file = self.log.with_name("policy.toml")
        file.write_text(text)
        assert execute(file.parent, "policy", "set", str(file), "--database", self.database).code == 0

    def item(self) -> dict[str, Any]:
        [item_listed] = self.call("reviewer", "GET", "/api/inbox/items")["items"]
        item: dict[str, Any] = self.call("reviewer", "GET", f"/api/inbox/items/{item_listed['id']}")
        return item

    def approve(self) -> None:
        item = self.item()
        seen = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
        self.call("reviewer", "POST", f"/api/inbox/items/{item['id']}/decision", **seen)

    def wait_for_death(self) -> None:
        wait_until(lambda: self.server.process.poll() is not None, "the server was not killed")
        self.server.kill()
        self.server.start()

    def wait_for(self, thread: str, status: str) -> None:
        wait_until(
            lambda: self.call("agent", "GET", f"/threads/{thread}")["status"] == status, f"the thread is not {status}"
        )


@pytest.fixture
def office(folder: Path) -> Iterator[Office]:
    found = Office(folder)
    yield found
    if found.server.process.poll() is None:
        found.server.kill()


@pytest.mark.promise("P2")
@pytest.mark.parametrize(("die", "happened"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("outcome", ["done", "run_again", "abandon"])
def test_interrupted_call_is_in_doubt_after_the_restart(office: Office, die: str, happened: int, outcome: str) -> None:
    thread = office.start("ours", "send_email", die)
    office.approve()
    office.wait_for_death()
    office.wait_for(thread, "interrupted")
    assert len(office.effects) == happened
    item = office.item()
    assert item["execution"] == "in_doubt"

    office.call("reviewer", "POST", f"/api/inbox/items/{item['id']}/in-doubt", outcome=outcome, notes="I looked")
    office.wait_for(thread, "idle")
    assert len(office.effects) == happened + (outcome == "run_again")
    heard = {"done": "carried out", "run_again": "sent to bob", "abandon": "Do not retry it"}
    assert heard[outcome] in json.dumps(office.call("agent", "GET", f"/threads/{thread}")["values"])


@pytest.mark.promise("P2")
@pytest.mark.parametrize("die", ["before", "after"])
def test_idempotent_tool_is_retried_after_the_restart(office: Office, die: str) -> None:
    thread = office.start("ours", "send_once", die)
    office.approve()
    office.wait_for_death()
    office.wait_for(thread, "idle")
    assert len(office.effects) == (2 if die == "after" else 1)
    assert len(set(office.effects)) == 1
    assert office.item()["execution"] == "done"


@pytest.mark.promise("P2")
def test_new_input_does_not_settle_the_doubt(office: Office) -> None:
    """The question is gone with new input, and the doubt is not: the same call is not approved before it is settled."""
    thread = office.start("ours", "send_email", "after")
    office.approve()
    office.wait_for_death()
    office.wait_for(thread, "interrupted")
    item = office.item()
    again: dict[str, Any] = {"assistant_id": "ours", "input": office.script("send_email", "after")}
    path = f"/threads/{thread}/runs/wait"
    office.call("reviewer", "POST", path, **again, multitask_strategy="interrupt")
    [asked] = office.call("reviewer", "GET", "/api/inbox/items?filter=is:pending")["items"]
    asked = office.call("reviewer", "GET", f"/api/inbox/items/{asked['id']}")
    assert [doubt["item_id"] for doubt in asked["doubts"]] == [item["id"]]
    seen = {"revision": asked["revision"], "hash": asked["hash"], "verb": "approve"}
    refusal = office.call("reviewer", "POST", f"/api/inbox/items/{asked['id']}/decision", 409, **seen)
    assert refusal["code"] == "in_doubt"
    office.call("reviewer", "POST", f"/api/inbox/items/{item['id']}/in-doubt", outcome="done")
    office.call("reviewer", "POST", f"/api/inbox/items/{asked['id']}/decision", **seen)
    office.wait_for(thread, "idle")
    assert len(office.effects) == 2, "twice, and both times a person knew"


@pytest.mark.promise("P2")
@pytest.mark.parametrize("then", ["allow", "never"])
def test_policy_changed_after_the_start_does_not_affect_the_call(office: Office, then: str) -> None:
    thread = office.start("ours", "send_email", "after")
    office.approve()
    wait_until(lambda: office.server.process.poll() is not None, "the server was not killed")
    office.put_policy(f'[[rules]]\nname = "turned"\ntool = "send_email"\nthen = "{then}"')
    office.wait_for_death()
    office.wait_for(thread, "interrupted")
    item = office.item()
    assert (item["execution"], len(office.effects)) == ("in_doubt", 1)
    office.call("reviewer", "POST", f"/api/inbox/items/{item['id']}/in-doubt", outcome="done")
    office.wait_for(thread, "idle")
    told = json.dumps(office.call("agent", "GET", f"/threads/{thread}")["values"])
    assert ("carried out" in told, "not executed" in told, len(office.effects)) == (True, False, 1)


def test_control_without_the_gate_the_call_is_made_twice(office: Office) -> None:
    """The control."""
    thread = office.start("per_call_bare", "send_email", "after")
    office.approve()
    office.wait_for_death()
    office.wait_for(thread, "idle")
    assert len(office.effects) == 2
