"""Every way to something that one has to know the id of, and something of Ada's to reach for."""

from dataclasses import dataclass
from typing import Any

import httpx

from tests.api.auth.conftest import Guarded
from tests.api.house import call

NOWHERE = "0197c5a0-0000-7000-8000-000000000000"


@dataclass(frozen=True)
class Place:
    """Where something of Ada's is: a thread that waits, the run that left it there, an assistant of hers."""

    thread: str
    run: str
    assistant: str


async def adas(guarded: Guarded) -> Place:
    ada = guarded.user("owner:ada")
    thread = (await ada.post("/threads", json={"metadata": {"members": ["bob", "eve"]}})).json()["thread_id"]
    run = await ada.post(f"/threads/{thread}/runs", json={"assistant_id": "whoami", "input": {"ask": True}})
    run_id = run.json()["run_id"]
    assert (await ada.get(f"/threads/{thread}/runs/{run_id}/join")).json()["__interrupt__"]
    assistant = await ada.post("/assistants", json={"graph_id": "whoami", "metadata": {"members": ["bob", "eve"]}})
    return Place(thread, run_id, assistant.json()["assistant_id"])


RUN = {"assistant_id": "whoami", "input": {"ask": True}, "multitask_strategy": "rollback"}
RESUME = {"assistant_id": "whoami", "command": {"resume": "yes"}}
REACHES: list[tuple[str, str, Any]] = [
    ("GET", "/threads/{thread}", None),
    ("PATCH", "/threads/{thread}", {"metadata": {"a": 1}}),
    ("GET", "/threads/{thread}/state", None),
    ("GET", "/threads/{thread}/state/{checkpoint_id}", None),
    ("POST", "/threads/{thread}/state", {"values": {"ask": False}, "as_node": "say"}),
    ("POST", "/threads/{thread}/state/checkpoint", {"checkpoint": {}}),
    ("GET", "/threads/{thread}/history", None),
    ("POST", "/threads/{thread}/history", {}),
    ("POST", "/threads/{thread}/copy", None),
    ("GET", "/threads/{thread}/storage", None),
    ("GET", "/threads/{thread}/stream", None),
    ("POST", "/threads/{thread}/runs", RUN),
    ("POST", "/threads/{thread}/runs/stream", RUN),
    ("POST", "/threads/{thread}/runs/wait", RUN),
    ("POST", "/threads/{thread}/runs", RESUME),
    ("POST", "/threads/{thread}/runs/crons", {"assistant_id": "whoami", "schedule": "0 0 * * *"}),
    ("GET", "/threads/{thread}/runs", None),
    ("GET", "/threads/{thread}/runs/{run}", None),
    ("GET", "/threads/{thread}/runs/{run}/join", None),
    ("GET", "/threads/{thread}/runs/{run}/stream", None),
    ("GET", "/runs/{run}/join", None),
    ("GET", "/runs/{run}/stream", None),
    ("POST", "/threads/{thread}/runs/{run}/cancel", None),
    ("POST", "/runs/cancel", {"thread_id": "{thread}", "run_ids": ["{run}"]}),
    ("DELETE", "/threads/{thread}/runs/{run}", None),
    ("DELETE", "/threads/{thread}", None),
    ("GET", "/assistants/{assistant}", None),
    ("PATCH", "/assistants/{assistant}", {"name": "mine"}),
    ("GET", "/assistants/{assistant}/graph", None),
    ("GET", "/assistants/{assistant}/schemas", None),
    ("GET", "/assistants/{assistant}/subgraphs", None),
    ("GET", "/assistants/{assistant}/subgraphs/{node}", None),
    ("POST", "/assistants/{assistant}/versions", {}),
    ("POST", "/assistants/{assistant}/latest", {"version": 1}),
    ("POST", "/runs/wait", {"assistant_id": "{assistant}", "input": {}}),
    ("POST", "/runs", {"assistant_id": "{assistant}", "input": {}}),
    ("POST", "/runs/stream", {"assistant_id": "{assistant}", "input": {}}),
    ("POST", "/runs/batch", [{"assistant_id": "{assistant}", "input": {}}]),
    ("DELETE", "/assistants/{assistant}?delete_threads=true", None),
]
"""Every way to a thread, a run or an assistant that one has to know the id of."""


def filled(text: Any, place: Place) -> Any:
    if isinstance(text, dict):
        return {key: filled(value, place) for key, value in text.items()}
    if isinstance(text, list):
        return [filled(value, place) for value in text]
    if not isinstance(text, str):
        return text
    named = {"thread": place.thread, "run": place.run, "assistant": place.assistant, "checkpoint_id": NOWHERE}
    named["node"] = "say"
    for name, value in named.items():
        text = text.replace(f"{{{name}}}", value)
    return text


async def reach(guarded: Guarded, token: str, place: Place, method: str, path: str, body: Any) -> httpx.Response:
    address = filled(path, place)
    if not path.endswith("{thread}/stream"):
        return await guarded.user(token).request(method, address, json=filled(body, place))
    headers = {"authorization": f"Bearer {token}", "host": "127.0.0.1"}
    empty = {"type": "http.request", "body": b"", "more_body": False}
    begun, *rest = await call(guarded.app, method, address, headers, [empty])  # ends because the caller goes away
    return httpx.Response(begun["status"], content=b"".join(message["body"] for message in rest))
