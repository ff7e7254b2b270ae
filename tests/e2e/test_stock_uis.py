"""Agent Inbox and Agent Chat UI, call by call as they make them: cross-origin, each with its preflight."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Page

from tests.servers import ServerProcess, frames

PAGE = "http://localhost:3000"
FLAGS = ("allow_ignore", "allow_respond", "allow_edit", "allow_accept")
EMAIL = {"to": "a@b.c", "body": "draft"}
CALL = {"id": "call_1", "name": "send_email", "args": {**EMAIL, "subject": "Offer"}, "type": "tool_call"}
EXAMPLE = {"messages": [{"role": "ai", "content": "", "tool_calls": [CALL]}]}


class Browser:
    """Sends what a browser sends for a page of another origin, and checks that the page may read the answer."""

    def __init__(self, http: httpx.AsyncClient, key: str | None = None) -> None:
        self._http = http
        self._key = {"x-api-key": key} if key else {}

    async def __call__(self, method: str, path: str, body: Any = None) -> httpx.Response:
        sent = {"content-type": "application/json", **self._key} if body is not None else self._key
        await self._preflight(method, path, sent)
        headers = {**sent, "origin": PAGE, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
        answer = await self._http.request(
            method, path, headers=headers, content=None if body is None else json.dumps(body)
        )
        assert answer.headers["access-control-allow-origin"] in (PAGE, "*")
        exposed = answer.headers["access-control-expose-headers"].lower()
        assert all(name in exposed for name in ("location", "content-location", "x-pagination-next"))
        return answer

    async def _preflight(self, method: str, path: str, sent: dict[str, str]) -> None:
        asked = {"origin": PAGE, "access-control-request-method": method}
        if sent:
            asked["access-control-request-headers"] = ",".join(sorted(sent))
        answer = await self._http.request("OPTIONS", path, headers=asked)
        assert answer.status_code in (200, 204), answer.text
        assert method in answer.headers["access-control-allow-methods"]
        allowed = answer.headers.get("access-control-allow-headers", "").lower()
        assert all(name in allowed for name in sent)


@pytest.fixture
async def http(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as made:
        yield made


@pytest.fixture
def inbox(http: httpx.AsyncClient, server: ServerProcess) -> Browser:
    """With the reviewer's key in the field for LangSmith's."""
    return Browser(http, server.printed("reviewer key"))


@pytest.fixture
def keyless(http: httpx.AsyncClient) -> Browser:
    return Browser(http)


async def asked(call: Browser, graph: str, input: Any) -> tuple[str, str]:
    """A thread that waits, and the mark by which a test finds its own."""
    mark = str(uuid4())
    thread = (await call("POST", "/threads", {"metadata": {"mark": mark}})).json()["thread_id"]
    await call("POST", f"/threads/{thread}/runs/wait", {"assistant_id": graph, "input": input})
    return thread, mark


async def listed(call: Browser, mark: str, **query: Any) -> list[Any]:
    body = {"limit": 10, "offset": 0, "metadata": {"mark": mark}, **query}
    threads: list[Any] = (await call("POST", "/threads/search", body)).json()
    return threads


async def resumed(call: Browser, thread: str, graph: str, *responses: Any) -> list[dict[str, str]]:
    """As the inbox sends an answer: followed by its events, `stream_mode` as one string."""
    body = {"command": {"resume": list(responses)}, "stream_mode": "events", "assistant_id": graph}
    answer = await call("POST", f"/threads/{thread}/runs/stream", body)
    assert answer.status_code == 200, answer.text
    return list(frames(answer))


@pytest.mark.promise("INBOX-20")
async def test_waiting_threads_are_listed_newest_first(inbox: Browser) -> None:
    first, mark = await asked(inbox, "hitl", {"text": "draft"})
    second = (await inbox("POST", "/threads", {"metadata": {"mark": mark}})).json()["thread_id"]
    await inbox("POST", f"/threads/{second}/runs/wait", {"assistant_id": "hitl", "input": {"text": "draft"}})
    idle = (await inbox("POST", "/threads", {"metadata": {"mark": mark}})).json()["thread_id"]
    threads = await listed(inbox, mark, metadata={"mark": mark, "graph_id": "hitl"}, status="interrupted")
    assert [thread["thread_id"] for thread in threads] == [second, first]
    assert all(one["created_at"] and one["updated_at"] for one in threads)
    (question,) = next(iter(threads[0]["interrupts"].values()))
    assert question.keys() == {"id", "value"}
    assert question["value"]["action_request"] == {"action": "send_email", "args": EMAIL}
    by_assistant = {"mark": mark, "assistant_id": threads[0]["metadata"]["assistant_id"]}
    assert len(await listed(inbox, mark, metadata=by_assistant)) == 2
    assert [thread["thread_id"] for thread in await listed(inbox, mark)] == [idle, second, first]
    assert [thread["thread_id"] for thread in await listed(inbox, mark, limit=1, offset=1)] == [second]


ANSWERS: dict[str, Any] = {
    "accept": {"type": "accept", "args": {"action": "send_email", "args": EMAIL}},
    "edit": {"type": "edit", "args": {"action": "send_email", "args": {**EMAIL, "body": "better"}}},
    "response": {"type": "response", "args": "make it shorter"},
    "ignore": {"type": "ignore", "args": None},
}


@pytest.mark.promise("INBOX-11", "INBOX-12", "INBOX-13", "INBOX-14", "INBOX-16", "INBOX-21")
@pytest.mark.parametrize("verb", ANSWERS)
async def test_answer_streams_its_events(inbox: Browser, verb: str) -> None:
    response = ANSWERS[verb]
    thread, _ = await asked(inbox, "hitl", {"text": "draft"})
    seen = await resumed(inbox, thread, "hitl", response)
    events = [json.loads(frame["data"]) for frame in seen if frame["event"] == "events"]
    started = [event["metadata"].get("langgraph_node") for event in events if event["event"] == "on_chain_start"]
    assert "review" in started
    assert not any(frame["event"] == "error" for frame in seen)
    body = (await inbox("GET", f"/threads/{thread}")).json()
    assert (body["status"], body["interrupts"]) == ("idle", {})
    assert body["values"]["answer"] == response


async def test_an_error_of_the_graph_is_an_event_among_the_others(inbox: Browser) -> None:
    thread = (await inbox("POST", "/threads", {})).json()["thread_id"]
    body = {"input": {"text": "x"}, "stream_mode": "events", "assistant_id": "failing"}
    seen = list(frames(await inbox("POST", f"/threads/{thread}/runs/stream", body)))
    assert seen[-1]["event"] == "error"
    assert json.loads(seen[-1]["data"]) == {"error": "ValueError", "message": "boom: x"}
    assert (await inbox("GET", f"/threads/{thread}")).json()["status"] == "error"


@pytest.mark.promise("INBOX-14")
async def test_ignored_thread_leaves_the_list_at_once(inbox: Browser) -> None:
    thread, mark = await asked(inbox, "hitl", {"text": "draft"})
    body = {"command": {"resume": [{"type": "ignore", "args": None}]}, "assistant_id": "hitl"}
    run = (await inbox("POST", f"/threads/{thread}/runs", body)).json()
    assert await listed(inbox, mark, status="interrupted") == []
    await inbox("GET", f"/threads/{thread}/runs/{run['run_id']}/join")
    assert (await listed(inbox, mark))[0]["status"] == "idle"


async def test_thread_marked_as_resolved_is_idle_without_questions(inbox: Browser) -> None:
    thread, mark = await asked(inbox, "hitl", {"text": "draft"})
    answer = await inbox("POST", f"/threads/{thread}/state", {"values": None, "as_node": "__end__"})
    assert answer.status_code == 200
    assert answer.json()["checkpoint"]["thread_id"] == thread
    (thread_listed,) = await listed(inbox, mark)
    assert (thread_listed["status"], thread_listed["interrupts"]) == ("idle", {})


async def test_state_shows_the_next_node_of_a_breakpoint(inbox: Browser) -> None:
    """The inbox reads the state where a thread is interrupted without a question."""
    thread, mark = await asked(inbox, "breakpoint", {"text": "draft"})
    (thread_listed,) = await listed(inbox, mark, status="interrupted")
    assert thread_listed["interrupts"] == {}
    state = (await inbox("GET", f"/threads/{thread}/state")).json()
    assert (state["next"], state["tasks"][0]["name"]) == (["publish"], "publish")


async def test_info_is_readable_without_a_key(keyless: Browser) -> None:
    told = (await keyless("GET", "/info")).json()
    assert told["host"]["kind"] == "self-hosted"
    assert told["flags"]["assistants"] is True


@pytest.mark.promise("INBOX-22")
@pytest.mark.parametrize("verb", ["response", "ignore"])
async def test_the_documented_example_runs_unchanged(inbox: Browser, verb: str) -> None:
    thread, mark = await asked(inbox, "inbox_example", EXAMPLE)
    (thread_listed,) = await listed(
        inbox, mark, status="interrupted", metadata={"mark": mark, "graph_id": "inbox_example"}
    )
    ((question,),) = thread_listed["interrupts"].values()
    assert question["value"]["action_request"] == {"action": "send_email", "args": CALL["args"]}
    assert [question["value"]["config"][flag] for flag in FLAGS] == [True, True, False, False]
    assert question["value"]["description"].startswith("# Offer\n\n**To**: a@b.c")
    await resumed(inbox, thread, "inbox_example", ANSWERS[verb])
    (done,) = await listed(inbox, mark)
    said = done["values"]["messages"][-1]
    assert (said["type"], said["tool_call_id"]) == ("tool", "call_1")
    assert said["content"] == ("make it shorter" if verb == "response" else "the person chose to ignore this")


async def test_run_with_a_reviewer_key_has_the_reviewers_permissions(inbox: Browser, keyless: Browser) -> None:
    thread, _ = await asked(inbox, "echo", {"text": "x"})
    (run,) = (await inbox("GET", f"/threads/{thread}/runs")).json()
    (local,) = await _runs_of(keyless)
    user = run["kwargs"]["config"]["configurable"]["langgraph_auth_user"]
    assert "decide" in user["permissions"]
    assert "decide" not in local["kwargs"]["config"]["configurable"]["langgraph_auth_user"]["permissions"]


async def _runs_of(call: Browser) -> list[Any]:
    thread, _ = await asked(call, "echo", {"text": "x"})
    runs: list[Any] = (await call("GET", f"/threads/{thread}/runs")).json()
    return runs


async def test_a_wrong_key_is_refused_and_one_for_another_service_is_not(http: httpx.AsyncClient) -> None:
    wrong = await Browser(http, "asnt_reviewer_" + "x" * 43)("POST", "/threads/search", {"limit": 1})
    assert wrong.status_code == 401
    assert "key" in wrong.json()["detail"]
    elsewhere = await Browser(http, "lsv2_pt_0123456789")("POST", "/threads/search", {"limit": 1})
    assert elsewhere.status_code == 200


async def test_page_of_another_origin_without_a_key_is_refused(http: httpx.AsyncClient) -> None:
    for origin in ("https://evil.example", "null", "http://localhost.evil.example"):
        headers = {"origin": origin, "content-type": "application/json"}
        answer = await http.post("/threads/search", headers=headers, content="{}")
        assert answer.status_code == 401
        assert "access-control-allow-origin" not in answer.headers
        asked = {"origin": origin, "access-control-request-method": "POST"}
        assert (await http.options("/threads/search", headers=asked)).status_code == 400


CHAT_MODES = ["messages-tuple", "values", "custom"]


async def test_the_chat_streams_a_turn(keyless: Browser) -> None:
    thread = (await keyless("POST", "/threads", {})).json()["thread_id"]
    body = {
        "input": {"messages": [{"id": str(uuid4()), "type": "human", "content": [{"type": "text", "text": "hi"}]}]},
        "config": {},
        "stream_mode": CHAT_MODES,
        "stream_subgraphs": True,
        "stream_resumable": True,
        "assistant_id": "chat",
        "on_disconnect": "continue",
        "checkpoint": None,
    }
    answer = await keyless("POST", f"/threads/{thread}/runs/stream", body)
    seen = list(frames(answer))
    assert {frame["event"] for frame in seen} == {"metadata", "messages", "values"}
    history = (await keyless("POST", f"/threads/{thread}/history", {"limit": 10})).json()
    assert len(history) == 3
    said = history[0]["values"]["messages"]
    assert [(one["type"], one["content"]) for one in said][1] == ("ai", "you said: hi ")
    again = await keyless("GET", answer.headers["location"])
    assert again.status_code == 200


@pytest.mark.parametrize("with_input", [{}, None])
async def test_the_chat_answers_with_decisions(keyless: Browser, with_input: Any) -> None:
    """As it does: an empty input beside the command, the newest checkpoint, and cancelling when the page is closed."""
    thread, _ = await asked(keyless, "hitl_batched", {"messages": [{"role": "user", "content": "hello"}]})
    (head, *_) = (await keyless("POST", f"/threads/{thread}/history", {"limit": 10})).json()
    (question,) = head["tasks"][0]["interrupts"]
    assert question["value"]["action_requests"][0]["name"] == "send_email"
    body = {
        "input": with_input,
        "command": {"resume": {"decisions": [{"type": "approve"}]}},
        "checkpoint": head["checkpoint"],
        "stream_mode": CHAT_MODES,
        "stream_subgraphs": True,
        "on_disconnect": "cancel",
        "assistant_id": "hitl_batched",
    }
    seen = list(frames(await keyless("POST", f"/threads/{thread}/runs/stream", body)))
    assert not any(frame["event"] == "error" for frame in seen)
    said = json.loads([frame["data"] for frame in seen if frame["event"] == "values"][-1])["messages"]
    assert [one["type"] for one in said] == ["human", "ai", "tool", "ai"]
    assert said[2]["content"] == "sent to a@b.c"
    history = (await keyless("POST", f"/threads/{thread}/history", {"limit": 10})).json()
    assert not any(state["metadata"]["source"] == "fork" for state in history)


async def test_the_chat_edits_an_earlier_message(keyless: Browser) -> None:
    """A new turn from the checkpoint before the first one: a fork."""
    thread, _ = await asked(keyless, "chat", {"messages": [{"role": "user", "content": "first"}]})
    history = (await keyless("POST", f"/threads/{thread}/history", {"limit": 10})).json()
    body = {
        "input": {"messages": [{"type": "human", "content": "instead"}]},
        "checkpoint": history[-1]["parent_checkpoint"] or history[-1]["checkpoint"],
        "stream_mode": CHAT_MODES,
        "on_disconnect": "cancel",
        "assistant_id": "chat",
    }
    seen = list(frames(await keyless("POST", f"/threads/{thread}/runs/stream", body)))
    said = json.loads([frame["data"] for frame in seen if frame["event"] == "values"][-1])["messages"]
    assert [one["content"] for one in said] == ["instead", "you said: instead "]


@contextmanager
def another_origin(folder: Path) -> Iterator[str]:
    """An empty page on a port of its own, as the stock UIs are served in development."""
    (folder / "index.html").write_text("<!doctype html><title>elsewhere</title>")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None: ...

    handler: Callable[..., Quiet] = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as site:
        serving = Thread(target=site.serve_forever, daemon=True)
        serving.start()
        yield f"http://localhost:{site.server_port}"
        site.shutdown()
        serving.join()


IN_THE_PAGE = """
async ([url, key]) => {
  const call = async (method, path, body) => {
    const headers = { "x-api-key": key, ...(body ? { "content-type": "application/json" } : {}) };
    const answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
    return { text: await answer.text(), location: answer.headers.get("location"), status: answer.status };
  };
  const json = async (...given) => JSON.parse((await call(...given)).text);
  const { thread_id } = await json("POST", "/threads", {});
  await json("POST", `/threads/${thread_id}/runs/wait`, { assistant_id: "hitl", input: { text: "draft" } });
  const before = await json("GET", `/threads/${thread_id}`);
  const resume = [{ type: "response", args: "shorter" }];
  const body = { command: { resume }, stream_mode: "events", assistant_id: "hitl" };
  const stream = await call("POST", `/threads/${thread_id}/runs/stream`, body);
  const after = await json("GET", `/threads/${thread_id}`);
  return { before: before.status, after: after.status, answer: after.values.answer, location: stream.location };
}
"""


async def test_real_browser_allows_the_cross_origin_calls(page: Page, server: ServerProcess, tmp_path: Path) -> None:
    with another_origin(tmp_path) as origin:
        await page.goto(origin)
        done = await page.evaluate(IN_THE_PAGE, [server.url, server.printed("reviewer key")])
    assert (done["before"], done["after"]) == ("interrupted", "idle")
    assert done["answer"] == {"type": "response", "args": "shorter"}
    assert done["location"].endswith("/stream")
