"""`assent demo`: what waits when it starts for the first time, and the line it prints to make more."""

import json
import shlex
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.command import PATIENCE, Server, execute, serving
from tests.waiting import wait_until

EXAMPLES = {
    ("tool", "human_interrupt", "send_email"),
    ("question", "clarification", "Where does Ana go?"),
    ("form", "form_elicitation", "The trip of Ben to Marenby: when, and how?"),
    ("config_change", "request", "Raise the rate limit of the checkout service"),
    ("sql", "request", "Clear out the carts that nobody came back to"),
    ("knowledge_upload", "request", "Add three documents to the handbook"),
    ("payment", "request", "Pay the invoice of Nordwind Ltd"),
}


def waiting(server: Server) -> list[dict[str, Any]]:
    listed_items: list[dict[str, Any]] = server.get("/api/inbox/items?filter=is:pending").json()["items"]
    return listed_items


def kinds(server: Server) -> set[tuple[str, str, str]]:
    return {(item["type"], item["dialect"], item["title"]) for item in waiting(server)}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("demo"), "demo", "--port", "0") as server:
        yield server


@pytest.mark.promise("ASST-40")
def test_demo_has_one_pending_item_of_each_kind(demo: Server) -> None:
    wanted = EXAMPLES | {("tool", "confirmation", "create_event")}
    wait_until(lambda: wanted <= kinds(demo), f"not all of them wait: {kinds(demo)}")


def test_config_change_is_shown_field_by_field(demo: Server) -> None:
    [item] = [item for item in waiting(demo) if item["type"] == "config_change"]
    whole = demo.get(f"/api/inbox/items/{item['id']}").json()
    assert {"field": "rate_limit.burst", "from": 50, "to": 100} in whole["asked"]["payload"]["changes"]


@pytest.mark.promise("ASST-40")
def test_printed_command_makes_another_item(demo: Server) -> None:
    command, url, flag, header, data, body = shlex.split(demo.said["try"])
    assert (command, flag, header, data) == ("curl", "-H", "content-type: application/json", "-d")
    with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
        asked = client.post(url, json=json.loads(body))
        assert (asked.status_code, asked.json()["status"]) == (202, "confirmation_required")
        calls = asked.json()["pending_action"]["tool_calls"]
        said = [{"call_id": call["call_id"], "approved": True} for call in calls]
        done = client.post(url.replace("/run", "/resume"), json={"thread_id": "mine", "approvals": said})
    assert (done.status_code, done.json()["status"]) == (200, "success")


def test_without_the_assistant_the_other_items_are_pending(tmp_path: Path) -> None:
    import assent.assistant.demo

    folder = Path(assent.assistant.demo.__file__).parent
    graphs: dict[str, Any] = {name: f"{folder / name}.py:graph" for name in ("email_draft", "trip")}
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('not today')\n")
    config = tmp_path / "langgraph.json"
    config.write_text(json.dumps({"dependencies": ["."], "graphs": graphs | {"assistant": f"{broken}:graph"}}))
    with serving(tmp_path, "demo", "--port", "0", changes={"ASSENT_CONFIG": str(config)}) as server:
        wait_until(lambda: kinds(server) == EXAMPLES, "the rest does not wait")
        _, url, *_, body = shlex.split(server.said["try"])
        with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
            assert client.post(url, json=json.loads(body)).status_code == 200
            gone = client.post(f"{server.url}/run", json={"thread_id": "t", "user_request": "x"})
        assert gone.status_code == 503
        wait_until(lambda: len(waiting(server)) == 9, "the printed line made nothing")


def test_a_second_start_adds_nothing(tmp_path: Path) -> None:
    counted = []
    for _ in range(2):
        with serving(tmp_path, "demo", "--port", "0") as server:
            wait_until(lambda server=server: len(waiting(server)) >= 9, "the examples do not wait")
            counted.append(len(waiting(server)))
            server.stop()
    assert counted == [9, 9]


@pytest.mark.promise("ASST-09")
def test_demo_listens_on_loopback_port_8002_by_default(tmp_path: Path) -> None:
    """If the port is in use, also by a parallel run of this test, the error names the address."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            taken.bind(("127.0.0.1", 8002))
            taken.listen()
        refused = execute(tmp_path, "demo")
    assert refused.code == 3
    assert "cannot listen on 127.0.0.1:8002" in refused.err
