"""A secret of a call is read by nobody but the thread's owner and people who may reveal it, whatever they open.

Every GET route of the app is opened by everyone who must not see it: a route with a parameter that is not filled in
here fails the sweep, and so does a stream that is not named here. The control unmasks the same values by policy.
"""

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message

from assent.identity.model.access import Kind, Role, operator
from assent.logs import JsonLines
from assent.review.model.secrets import MASK
from assent.runs.threads import states as thread_states
from assent.runs.threads import threads
from tests.api.house import LOCAL, Builder, House
from tests.api.reviewing import PATIENCE, SECRET_KEY, Office, problem, script, staff
from tests.api.test_routes import PARAMETER, operations
from tests.receiver import Receiver, receiving
from tests.waiting import until

pytestmark = pytest.mark.promise("P10")

GRAPHS = Path(__file__).parents[1] / "graphs_secrets" / "langgraph.json"
NEEDLES = ("c4nary", "7f3a91")
PASSWORD = "c4nary'\"\\ üß •\n7f3a91 \\n'"
MEMO, CODE = "m3mo c4nary-7f3a91", "c0de{c4nary}7f3a91"
ARGS = {"user": "ada", "password": PASSWORD, "memo": MEMO, "code": CODE}
PATHS = ["password", "memo", "code", "token"]
HIDES = {"name": "all", "then": "ask", "by": {"people": ["ana"]}, "mask": ["memo"]}
SHOWS = {"name": "all", "then": "ask", "by": {"people": ["ana"]}, "unmask": PATHS}
STREAMS = {"/threads/{thread_id}/stream", "/api/inbox/events"}


@dataclass
class Scene:
    """A thread whose agent has asked about a call with secrets, and everyone who looks at it."""

    office: Office
    thread: str
    run: str
    item: str
    others: dict[str, httpx.AsyncClient]
    admin: httpx.AsyncClient
    receiver: Receiver
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def everyone(self) -> dict[str, httpx.AsyncClient]:
        """Whoever must not see a secret without revealing it."""
        return {**self.others, "admin": self.admin}


@pytest.fixture
async def house(build_on_both: Builder) -> House:
    return await build_on_both(config=GRAPHS, secret_key=SECRET_KEY, show_errors=True, outbound_allow=("127.0.0.1",))


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, down to the smallest thing."""
    stream, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    level, root.level = root.level, logging.DEBUG
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


@asynccontextmanager
async def scene(house: House, rule: Mapping[str, Any], graph: str = "batched") -> AsyncIterator[Scene]:
    office = await staff(house)
    await office.policy({"default": dict(rule)})
    others = {
        "another agent": house.client(await house.key()),
        "a service": house.client(await house.key(Kind.SERVICE)),
        "a viewer": house.client(await house.person("vera", Role.VIEWER)),
        "a reviewer without the right": office.ben,
    }
    async with receiving() as receiver:
        thread = await shared(office)
        said = {"stream_resumable": True, "stream_mode": ["values", "messages-tuple", "updates", "debug"]}
        body = {"assistant_id": graph, "input": script(("log_in", ARGS)), "webhook": receiver.url, **said}
        made = (await office.agent.post(f"/threads/{thread}/runs", json=body)).json()
        await office.agent.get(f"/threads/{thread}/runs/{made['run_id']}/join")
        [item] = await office.items(f"is:pending thread:{thread}")
        yield Scene(office, thread, made["run_id"], item["id"], others, await house.admin(), receiver)


async def shared(office: Office) -> str:
    """A thread that other agents open too: they see it with masks."""
    made = await office.agent.post("/threads", json={"visibility": "shared"})
    assert made.status_code == 200, made.text
    return str(made.json()["thread_id"])


def leaks(text: str | bytes) -> bool:
    decoded = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return any(needle in decoded for needle in NEEDLES)


# Every route


async def parameters(thread_scene: Scene) -> dict[str, str]:
    """What stands for each parameter of a path; the things themselves are there."""
    agent, admin = thread_scene.office.agent, thread_scene.admin
    state = (await agent.get(f"/threads/{thread_scene.thread}/state")).json()
    deliveries = (await admin.get("/api/deliveries")).json()["items"]
    assistants = (await agent.post("/assistants/search", json={"graph_id": "batched"})).json()
    view = (await thread_scene.office.ana.post("/api/inboxes", json={"name": "mine"})).json()
    approval = (await admin.get("/api/standing-approvals")).json()["items"]
    return {
        "thread_id": thread_scene.thread,
        "run_id": thread_scene.run,
        "item_id": thread_scene.item,
        "checkpoint_id": state["checkpoint"]["checkpoint_id"],
        "delivery_id": deliveries[0]["id"],
        "assistant_id": assistants[0]["assistant_id"],
        "inbox_id": str(view.get("id", "none")),
        "approval_id": approval[0]["id"] if approval else "none",
        "agent": "none",
        "agent_id": "none",
        "deployment_id": "none",
        "reason_id": "none",
        "cron_id": "none",
        "namespace": "none",
        "name": "ana",
        "path": "assent.css",
        **thread_scene.ids,
    }


def filled(path: str, given: Mapping[str, str]) -> str:
    missing = [match[1] for match in PARAMETER.finditer(path) if match[1] not in given]
    assert not missing, f"say in `parameters` what stands for {missing[0]!r} in {path}, so that the sweep opens it"
    return PARAMETER.sub(lambda found: given[found[1]], path)


async def swept(thread_scene: Scene) -> dict[tuple[str, str], int]:
    """Every GET route as everyone opens it: who, what, and whether there was a leak."""
    given = await parameters(thread_scene)
    seen: dict[tuple[str, str], int] = {}
    for method, path in operations(thread_scene.office.house.app):
        if method != "GET" or path in STREAMS:
            continue
        for who, client in thread_scene.everyone.items():
            async with asyncio.timeout(90):
                response = await client.get(filled(path, given), headers={"last-event-id": "-1"})
            assert response.status_code not in (500, 502, 503), (who, path, response.text)
            seen[who, path] = leaks(response.content)
    return seen


ASKED: dict[str, Any] = {
    "/threads/search": {"select": ["values", "interrupts", "metadata"], "extract": {"x": "values.messages[-1]"}},
    "/threads/{thread_id}/history": {"limit": 50},
    "/threads/{thread_id}/state/checkpoint": {"checkpoint": {}, "subgraphs": True},
    "/threads/{thread_id}/runs/wait": {"assistant_id": "batched", "input": {"messages": []}},
    "/threads/{thread_id}/runs/stream": {"assistant_id": "batched", "command": {"resume": {"x": 1}}},
    "/threads/{thread_id}/runs": {"assistant_id": "batched", "command": {"resume": None}},
    "/threads/{thread_id}/state": {"values": {"messages": []}, "as_node": "nowhere"},
    "/threads/{thread_id}/copy": {},
    "/threads": {"thread_id": "{thread_id}", "if_exists": "do_nothing"},
    "/api/inbox/items/{item_id}/decision": {"revision": 9, "hash": "x", "verb": "approve"},
    "/api/inbox/items/{item_id}/comments": {"text": "why?"},
    "/api/inbox/items/{item_id}/reveal": {},
}
"""What else shows something of a thread or an item, or says why not."""


async def asked(thread_scene: Scene) -> dict[tuple[str, str], int]:
    given = await parameters(thread_scene)
    seen: dict[tuple[str, str], int] = {}
    for path, body in ASKED.items():
        for who, client in thread_scene.others.items():
            said = json.loads(filled(json.dumps(body), given)) if path == "/threads" else body
            response = await client.post(filled(path, given), json=said)
            assert response.status_code not in (500, 502, 503), (who, path, response.text)
            seen[who, f"POST {path}"] = leaks(response.content)
            patched = await client.patch(f"/threads/{thread_scene.thread}", json={"metadata": {"n": 1}})
            seen[who, "PATCH"] = leaks(patched.content)
    return seen


@pytest.mark.parametrize(
    ("build_on_both", "graph"),
    [("sqlite", "batched"), ("sqlite", "per_call"), ("sqlite", "gated"), ("postgres", "gated")],
    indirect=["build_on_both"],
)
async def test_no_route_shows_a_secret_to_callers_without_the_right(house: House, graph: str, log: io.StringIO) -> None:
    async with scene(house, HIDES, graph) as thread_scene:
        before = await swept(thread_scene) | await asked(thread_scene)
        assert len({path for _, path in before}) > 50
        assert not [place for place, leak in before.items() if leak]
        await decided(thread_scene)
        after = await swept(thread_scene)
        assert not [place for place, leak in after.items() if leak]
        [told, *_] = await thread_scene.receiver.has(1)
        assert not leaks(told.content)
    assert not leaks(log.getvalue())


async def test_control_values_unmasked_by_a_policy_are_shown_on_the_same_routes(house: House) -> None:
    async with scene(house, SHOWS) as thread_scene:
        seen = await swept(thread_scene) | await asked(thread_scene)
        assert sum(seen.values()) > 40
        assert seen["a viewer", "/threads/{thread_id}/state"]
        assert seen["another agent", "/api/inbox/items/{item_id}"]
        [told, *_] = await thread_scene.receiver.has(1)
        assert leaks(told.content)


async def decided(thread_scene: Scene) -> None:
    """Somebody edits something else, and the call is made with its secrets."""
    item = await thread_scene.office.get(thread_scene.item)
    args = {**item["actions"][0]["args"], "user": "bob"}
    assert args["password"] == MASK
    await thread_scene.office.decided(item, actions=[{"key": "0", "verb": "edit", "args": args}])
    done = await thread_scene.office.rests(thread_scene.thread, status="idle")
    said = [str(message["content"]) for message in done["values"]["messages"]]
    assert any(f"logged in as bob with {PASSWORD} {MEMO} {CODE}" in one for one in said), "the tool got what is meant"


# Streams that do not end by themselves


@asynccontextmanager
async def listening(
    house: House, path: str, client: httpx.AsyncClient, **headers: str
) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
    """A stream from now on; what is yielded waits for words in it, and gives all that was heard."""
    heard, gone, opened = bytearray(), asyncio.Event(), asyncio.Event()

    incoming: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if incoming:
            return incoming.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        heard.extend(message.get("body", b""))
        opened.set()

    async def until_heard(words: str) -> str:
        async def is_heard() -> bool:
            return words.encode() in heard

        await until(is_heard)
        return heard.decode()

    given = {**LOCAL, "x-api-key": client.headers["x-api-key"], **headers}
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
    about = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http"}
    where = {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "headers": sent}
    ends = {"client": ("127.0.0.1", 40000), "server": ("127.0.0.1", 2024)}
    task = asyncio.create_task(house.app({**about, **where, **ends}, receive, send))
    try:
        await asyncio.wait_for(opened.wait(), PATIENCE)
        yield until_heard
    finally:
        gone.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("rule", [HIDES, SHOWS])
async def test_live_streams_show_masks_to_others_and_the_value_where_it_is_unmasked(
    house: House, rule: dict[str, Any]
) -> None:
    async with scene(house, rule, "gated") as thread_scene:
        modes = ["values", "messages-tuple", "messages", "updates", "events", "debug", "tasks", "custom"]
        body = {"assistant_id": "gated", "input": script(("log_in", ARGS)), "stream_mode": modes}
        for who, client in thread_scene.others.items():
            thread = await shared(thread_scene.office)
            async with listening(house, f"/threads/{thread}/stream", client) as until_heard:
                await thread_scene.office.agent.post(f"/threads/{thread}/runs/wait", json=body)
                said = await until_heard("run_done")
            assert "log_in" in said
            assert leaks(said) is (rule is SHOWS), who


async def test_words_streamed_by_a_model_show_no_secret_to_others(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        client = thread_scene.others["a viewer"]
        async with listening(house, f"/threads/{thread_scene.thread}/stream", client) as until_heard:
            await thread_scene.office.decided(await thread_scene.office.get(thread_scene.item), "approve")
            said = await until_heard("run_done")
        frames = [json.loads(line[6:]) for line in said.splitlines() if line.startswith('data: [{"content"')]
        whole = "".join(str(frame[0]["content"]) for frame in frames if frame[0]["type"] == "AIMessageChunk")
        assert "done: logged in as ada with" in whole
        assert not leaks(said)
        assert not leaks(whole)


async def test_changes_of_items_show_masks(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        said = {"token": PASSWORD, "message": f"Use {PASSWORD}"}
        thread = await thread_scene.office.run(
            "asking", {"questions": [said]}, thread=await shared(thread_scene.office)
        )
        for client in thread_scene.everyone.values():
            async with listening(house, "/api/inbox/events", client, last_event_id="0") as until_heard:
                assert not leaks(await until_heard(thread))


# What providers and authors write where


async def test_a_secret_is_masked_in_every_place_where_providers_repeat_a_call(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        args = {**ARGS, "code": ""}  # nobody knows a schema of what this graph calls
        said = {"role": "user", "content": "go", "additional_kwargs": {"args": args, "text": json.dumps(args)}}
        thread = await thread_scene.office.run(
            "repeating", {"messages": [said]}, thread=await shared(thread_scene.office)
        )
        for client in (thread_scene.office.agent, thread_scene.office.ana):
            own = (await client.get(f"/threads/{thread}/state")).text
            assert leaks(own), "its agent needs it, and she may decide about the tool, though nothing was asked"
        for client in thread_scene.others.values():
            for path in (f"/threads/{thread}/state", f"/threads/{thread}", f"/threads/{thread}/history"):
                assert not leaks((await client.get(path)).text)


async def test_an_error_that_repeats_a_secret_shows_a_mask_and_so_does_the_log(house: House, log: io.StringIO) -> None:
    async with scene(house, HIDES, "gated") as thread_scene:
        calls = script(("log_in", {**ARGS, "mood": "fail"}))
        item = await thread_scene.office.asked("gated", calls, thread=await shared(thread_scene.office))
        await thread_scene.office.decided(item, "approve")
        thread = item["source"]["thread_id"]
        failed = await thread_scene.office.rests(thread, status="error")
        assert leaks(str(failed["error"])), "its agent sees what went wrong"
        for client in thread_scene.others.values():
            for path in (f"/threads/{thread}", f"/threads/{thread}/state", f"/threads/{thread}/runs"):
                assert not leaks((await client.get(path)).text)
    assert "run failed" in log.getvalue()
    assert not leaks(log.getvalue())


async def test_a_question_in_any_dialect_hides_its_secrets(house: House) -> None:
    questions: list[Any] = [
        {"token": PASSWORD, "message": f"Use {PASSWORD}"},
        {"action_request": {"action": "x", "args": {"api_key": PASSWORD}}, "config": dict.fromkeys(FLAGS, True)},
        json.dumps({"action_request": {"action": "x", "args": {"pin": PASSWORD}}, "config": {}}),
        json.dumps({"action_request": {"password": PASSWORD}})[:-1],
        {"kind": "confirmation", "tool_calls": [{"call_id": "c", "tool_name": "p", "arguments": {"cvv": PASSWORD}}]},
        [{"Private-Key": PASSWORD}],
    ]
    async with scene(house, HIDES) as thread_scene:
        for question in questions:
            thread = await thread_scene.office.run(
                "asking", {"questions": [question]}, thread=await shared(thread_scene.office)
            )
            [item] = await thread_scene.office.items(f"is:pending thread:{thread}")
            for client in thread_scene.everyone.values():
                for path in (f"/api/inbox/items/{item['id']}", f"/threads/{thread}", f"/inbox/{item['id']}"):
                    response = await client.get(path)
                    assert not leaks(response.text), (question, path, response.text)


async def test_json_in_a_text_is_masked_alike_in_the_item_and_in_the_thread(house: House) -> None:
    body = json.dumps({"user": "ada", "password": PASSWORD, "note": "n"})
    call = {
        "action_request": {"action": "http_post", "args": {"body": body, "n": 1}},
        "config": dict.fromkeys(FLAGS, True),
    }
    async with scene(house, HIDES) as thread_scene:
        said = {**call, "description": f"post {PASSWORD}"}
        item = await thread_scene.office.asked(
            "asking", {"questions": [[said]]}, thread=await shared(thread_scene.office)
        )
        [action], thread = item["actions"], item["source"]["thread_id"]
        masked = json.dumps({"user": "ada", "password": MASK, "note": "n"}, ensure_ascii=False)
        assert action["args"] == {"body": masked, "n": 1}, "and nothing else is altered"
        assert item["description"] == f"post {MASK}"
        for client in thread_scene.everyone.values():
            for path in (f"/api/inbox/items/{item['id']}", f"/inbox/{item['id']}", f"/threads/{thread}/state"):
                assert not leaks((await client.get(path)).text)
        state = (await thread_scene.others["a viewer"].get(f"/threads/{thread}/state")).json()
        [[seen]] = [state["interrupts"][0]["value"]]
        assert seen["action_request"]["args"] == action["args"]
        edit = [{"key": "0", "verb": "edit", "args": {"body": masked, "n": 2}}]
        decided = await thread_scene.office.decided(item, actions=edit)
        [own] = (await thread_scene.office.post(decided, "reveal")).json()
        assert own["args"] == {"body": body, "n": 2}, "an edit that leaves the mask keeps the secret"


FLAGS = ("allow_accept", "allow_edit", "allow_respond", "allow_ignore")


async def test_a_request_hides_secrets_also_from_its_callback_and_its_comments(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        office, receiver = thread_scene.office, thread_scene.receiver
        before = len(await receiver.has(1))
        item = await office.request(
            title=f"Use {PASSWORD}",
            description=f"It is {PASSWORD!r}",
            payload={"secret": PASSWORD},
            actions=[{"name": "log_in", "args": {"token": PASSWORD, "n": 1}, "description": json.dumps(PASSWORD)}],
            callback=receiver.url,
        )
        assert not leaks(json.dumps(item))
        commented = await office.post(item, "comments", text=f"is {PASSWORD} right?")
        assert commented.json()["text"] == f"is {MASK} right?"
        edit = [{"key": "0", "verb": "edit", "args": {"token": MASK, "n": 2}}]
        assert not leaks((await office.decide(item, actions=edit, notes=f"not {PASSWORD}")).text)
        told = (await receiver.has(before + 1))[-1]
        assert told.json["actions"] == [{"key": "0", "verb": "edit", "args": {"token": MASK, "n": 2}}]
        assert not leaks(told.content)
        for path in ("revisions", "timeline", "comments"):
            assert not leaks((await office.ana.get(f"/api/inbox/items/{item['id']}/{path}")).text)
        assert not leaks((await thread_scene.admin.get("/api/audit/export")).text)
        [own] = (await office.post(item, "reveal", office.agent)).json()
        assert own["args"] == {"token": PASSWORD, "n": 2}, "who has asked gets what was decided"


# Revealing


async def test_person_with_the_reveal_right_sees_the_value_and_the_timeline_records_it(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        for _ in range(2):
            for path in (f"/threads/{thread_scene.thread}", f"/threads/{thread_scene.thread}/state"):
                assert leaks((await thread_scene.office.ana.get(path)).text)
        events = (await thread_scene.admin.get("/api/audit/events", params={"kind": "thread.revealed"})).json()["items"]
        assert [event["subject"] for event in events] == [f"thread:{thread_scene.thread}"], "once for each state"
        await thread_scene.office.ana.get(f"/threads/{thread_scene.thread}/state", params={"select": "next"})
        assert not leaks((await thread_scene.office.ana.get(f"/inbox/threads/{thread_scene.thread}")).text), (
            "a page never does"
        )
        await thread_scene.office.verified()


async def test_owner_sees_the_value_without_a_timeline_event(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        for path in ("", "/state", "/history", "/runs"):
            assert leaks((await thread_scene.office.agent.get(f"/threads/{thread_scene.thread}{path}")).text)
        events = (await thread_scene.admin.get("/api/audit/events", params={"kind": "thread.revealed"})).json()["items"]
        assert events == []


async def test_revealing_an_item_needs_the_right_and_is_recorded(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        item = await thread_scene.office.get(thread_scene.item)
        assert "reveal" in item["can"]
        for who, client in thread_scene.others.items():
            refused = await client.post(f"/api/inbox/items/{thread_scene.item}/reveal")
            assert refused.status_code == 403, who
            assert "reveal" not in (await thread_scene.office.get(thread_scene.item, client))["can"]
        assert "item.revealed" not in await thread_scene.office.kinds(thread_scene.item)
        [shown] = (await thread_scene.office.post(item, "reveal")).json()
        assert shown["args"] == ARGS
        assert "item.revealed" in await thread_scene.office.kinds(thread_scene.item)


# A search must not tell what a mask hides


async def test_filter_does_not_match_hidden_values_of_a_thread(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        wanted = {"values": {"messages": [{"tool_calls": [{"args": {"memo": MEMO}}]}]}}
        for who, client in thread_scene.others.items():
            response = await client.post("/threads/search", json=wanted)
            assert response.json() == [], who
            assert response.headers["X-Pagination-Total"] == "0"
            assert (await client.post("/threads/count", json=wanted)).json() == 0, who
        for client in (thread_scene.office.agent, thread_scene.office.ana):
            assert len((await client.post("/threads/search", json=wanted)).json()) == 1
            assert (await client.post("/threads/count", json=wanted)).json() == 1
        harmless = {"values": {"messages": [{"tool_calls": [{"args": {"user": "ada"}}]}]}}
        assert len((await thread_scene.others["a viewer"].post("/threads/search", json=harmless)).json()) == 1


async def found_by(client: httpx.AsyncClient, thread: str, said: Mapping[str, Any], states: Mapping[str, Any]) -> bool:
    """Whether a filter by the metadata of a thread, or of its states, finds anything."""
    search = await client.post("/threads/search", json={"metadata": said})
    count = (await client.post("/threads/count", json={"metadata": said})).json()
    assert (len(search.json()), search.headers["X-Pagination-Total"]) == (count, str(count))
    history = await client.post(f"/threads/{thread}/history", json={"limit": 10, "metadata": states})
    assert bool(count) == bool(history.json())
    return bool(count)


async def labelled(thread_scene: Scene) -> str:
    made = {"visibility": "shared", "metadata": {"pin": "4711", "label": "a", "in": [{"token": MEMO}]}}
    thread = str((await thread_scene.office.agent.post("/threads", json=made)).json()["thread_id"])
    run = {"assistant_id": "asking", "input": {"questions": []}, "metadata": {"token": "9876", "note": "b"}}
    assert (await thread_scene.office.agent.post(f"/threads/{thread}/runs/wait", json=run)).status_code == 200
    return thread


async def test_filter_by_metadata_does_not_match_masked_values(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        thread = await labelled(thread_scene)
        masked = [thread_scene.others[who] for who in ("another agent", "a service", "a viewer")]
        for client in (*masked, thread_scene.office.agent):
            own = client is thread_scene.office.agent
            assert await found_by(client, thread, {"pin": "4711"}, {"token": "9876"}) is own
            assert await found_by(client, thread, {"label": "a", "in": [{"token": MEMO}]}, {"token": "9876"}) is own
            assert not await found_by(client, thread, {"pin": "4712"}, {"token": "9877"})
            assert await found_by(client, thread, {"label": "a"}, {"note": "b"}), "what is no secret is found"


async def test_control_unchecked_filter_by_metadata_matches_masked_values(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def seen(*_: Any) -> bool:
        return True

    monkeypatch.setattr(threads, "_may_hide", lambda _: False)
    monkeypatch.setattr(thread_states, "_is_seen", seen)
    async with scene(house, HIDES) as thread_scene:
        thread = await labelled(thread_scene)
        assert await found_by(thread_scene.others["another agent"], thread, {"pin": "4711"}, {"token": "9876"})
        assert not await found_by(thread_scene.others["another agent"], thread, {"pin": "4712"}, {"token": "9877"})


async def test_thread_with_secrets_is_copied_only_by_callers_who_see_them(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        for who in ("another agent", "a reviewer without the right"):
            problem(
                await thread_scene.others[who].post(f"/threads/{thread_scene.thread}/copy", json={}), 403, "not_allowed"
            )
        assert (
            await thread_scene.office.agent.post(f"/threads/{thread_scene.thread}/copy", json={})
        ).status_code == 200


# A mask that comes back


async def test_a_write_that_holds_a_mask_is_refused_and_names_the_place(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        office = thread_scene.office
        thread = await office.run("repeating", {"messages": [{"role": "user", "content": "x", **PLAIN}]})
        item, back = await office.get(thread_scene.item), await office.request()
        await office.ask_revision(back)
        named, own = f"/api/inbox/items/{thread_scene.item}", f"/threads/{thread}"
        run, seen = {"assistant_id": "repeating"}, {"revision": item["revision"], "hash": item["hash"]}
        answer = {"key": "0", "verb": "respond", "message": f"use {MASK}"}
        moved = {"key": "0", "verb": "edit", "args": {"user": MASK, "password": MASK}}
        past = [{"updates": [{"values": {"a": MASK}, "as_node": "x"}]}]
        resumed = {**run, "command": {"resume": {"a": {"p": MASK}}}}
        attempts: list[tuple[httpx.AsyncClient, str, str, Any, str]] = [
            (office.agent, "POST", f"{own}/state", {"values": {"a": [MASK]}}, "values.a[0]"),
            (office.agent, "POST", f"{own}/runs", {**run, "input": {"a": f"x {MASK}"}}, "input.a"),
            (office.agent, "POST", f"{own}/runs/wait", {**run, "command": {"update": {"a": MASK}}}, "command.update.a"),
            (office.ana, "POST", f"/threads/{thread_scene.thread}/runs/wait", resumed, "command.resume.a.p"),
            (office.agent, "POST", "/threads", {"supersteps": past}, "supersteps[0][0].a"),
            (office.ana, "POST", f"{named}/decision", {**seen, "actions": [answer]}, "actions[0].message"),
            (office.ana, "POST", f"{named}/decision", {**seen, "actions": [moved]}, "actions[0].args.user"),
            (office.agent, "POST", "/api/inbox/items", {"type": "t", "title": "t", "payload": [MASK]}, "payload[0]"),
            (office.agent, "POST", f"/api/inbox/items/{back['id']}/resubmission", {"payload": MASK}, "payload"),
            (office.ana, "PUT", f"{named}/draft", {"draft": {"x": MASK}}, "draft.x"),
        ]
        for client, method, path, body, place in attempts:
            refused = await client.request(method, path, json=body)
            assert refused.status_code == 422, (path, refused.text)
            assert refused.json()["errors"][0]["path"] == place, refused.text
        assert (await office.get(thread_scene.item))["status"] == "PENDING"


PLAIN = {"additional_kwargs": {"args": {}, "text": "{}"}}


async def test_control_the_same_writes_without_a_mask_are_taken(house: House) -> None:
    async with scene(house, HIDES) as thread_scene:
        thread = await thread_scene.office.run("repeating", {"messages": [{"role": "user", "content": "x", **PLAIN}]})
        values = {"messages": [{"role": "user", "content": "fine"}]}
        assert (
            await thread_scene.office.agent.post(f"/threads/{thread}/state", json={"values": values})
        ).status_code == 200
        assert (await thread_scene.office.agent.post("/threads", json={})).status_code == 200
        draft = {"draft": {"typed": f"the mask {MASK} is quoted"}}
        assert (
            await thread_scene.office.ana.put(f"/api/inbox/items/{thread_scene.item}/draft", json=draft)
        ).status_code == 200


async def test_the_policy_of_the_operator_is_kept(house: House) -> None:
    """A rule with `mask` and `unmask` is stored and shown as it was written."""
    await house.services.policies.put(operator(), {"default": {**HIDES, "unmask": ["page.token"]}})
    admin = await house.admin()
    kept = (await admin.get("/api/policies")).json()["policy"]["default"]
    assert (kept["mask"], kept["unmask"]) == (["memo"], ["page.token"])
