"""A server that is killed in the middle of an approved call: after its restart the call is in doubt, not made again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.servers import ServerProcess, dev_server, wait_until

CONFIG = Path(__file__).parent / "graphs" / "langgraph.json"


class Office:
    """An agent and a reviewer at a real server."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "effects"
        self.server: ServerProcess = dev_server(f"sqlite:///{folder}/assent.db", config=CONFIG)
        self.server.start()
        self.keys = {name: self.server.printed(f"{name} key") for name in ("agent", "reviewer")}

    @property
    def effects(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def call(self, who: str, method: str, path: str, **body: Any) -> Any:
        with httpx.Client(base_url=self.server.url, headers={"x-api-key": self.keys[who]}, timeout=30) as http:
            response = http.request(method, path, json=body or None)
            assert response.status_code == 200, response.text
            return response.json()

    def start(self, graph: str, tool: str, die: str) -> str:
        script = json.dumps([{"name": tool, "args": {"to": "bob", "log": str(self.log), "die": die}}])
        thread = self.call("agent", "POST", "/threads", metadata={})["thread_id"]
        input = {"messages": [{"role": "user", "content": script}]}
        self.call("agent", "POST", f"/threads/{thread}/runs/wait", assistant_id=graph, input=input)
        return str(thread)

    def item(self) -> dict[str, Any]:
        [found] = self.call("reviewer", "GET", "/api/inbox/items")["items"]
        item: dict[str, Any] = self.call("reviewer", "GET", f"/api/inbox/items/{found['id']}")
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
def test_the_call_is_in_doubt(office: Office, die: str, happened: int, outcome: str) -> None:
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
def test_a_tool_that_knows_the_key_is_tried_again(office: Office, die: str) -> None:
    thread = office.start("ours", "send_once", die)
    office.approve()
    office.wait_for_death()
    office.wait_for(thread, "idle")
    assert len(office.effects) == (2 if die == "after" else 1)
    assert len(set(office.effects)) == 1
    assert office.item()["execution"] == "done"


def test_without_the_gate_it_is_made_twice(office: Office) -> None:
    """The control."""
    thread = office.start("per_call_bare", "send_email", "after")
    office.approve()
    office.wait_for_death()
    office.wait_for(thread, "idle")
    assert len(office.effects) == 2
