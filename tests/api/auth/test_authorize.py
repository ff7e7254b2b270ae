"""`@auth.on`: what a handler refuses is refused, what it does not show is not there, what it writes is kept."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from langgraph_sdk import Auth
from langgraph_sdk.client import LangGraphClient

from assent.identity.custom_auth import CustomAuth
from assent.identity.model.access import Kind
from assent.threads.model.assistants import own_id
from tests.api.auth.conftest import Guarded
from tests.api.auth.reaches import NOWHERE, REACHES, RUN, Place, adas, reach

SECRET = "hunter2"


def operations(app: FastAPI) -> Iterator[tuple[str, str]]:
    for context in iter_route_contexts(app.routes):
        for method in (getattr(context, "methods", None) or set()) - {"HEAD", "OPTIONS"}:
            yield method, str(getattr(context, "path", None) or "")


def shape(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.partition("?")[0].split("/"))


async def test_every_route_with_an_id_is_in_the_list(guarded: Guarded) -> None:
    """A new route has to be in it, or it can be forgotten to ask the handlers."""
    listed = {(method, shape(path)) for method, path, _ in REACHES}
    ours = ("/threads/", "/runs", "/assistants/")
    served = {(method, shape(path)) for method, path in operations(guarded.app) if path.startswith(ours)}
    later = {one for one in served if one[1].endswith(("/commands", "/stream/events"))}
    later |= {one for one in served if one[1].startswith("/runs/crons")}  # tests/api/test_crons.py
    without_ids = {("POST", f"/{noun}/{verb}") for noun in ("threads", "assistants") for verb in ("search", "count")}
    assert served - later - without_ids - {("POST", "/threads/prune")} == listed


@pytest.mark.promise("P7")
@pytest.mark.parametrize(("method", "path", "body"), REACHES)
async def test_resource_outside_the_filter_is_404(guarded: Guarded, method: str, path: str, body: Any) -> None:
    place = await adas(guarded)
    ada = guarded.user("owner:ada")
    foreign = await reach(guarded, "owner:bob", place, method, path, body)
    nowhere = await reach(guarded, "owner:bob", Place(NOWHERE, NOWHERE, NOWHERE), method, path, body)
    expected = 409 if path.endswith("/copy") else 404
    assert (foreign.status_code, nowhere.status_code) == (expected, expected), foreign.text
    hidden = foreign.text
    for own in (place.thread, place.run, place.assistant):
        hidden = hidden.replace(own, NOWHERE)
    told, usual = httpx.Response(200, text=hidden).json(), nowhere.json()
    assert {**told, "request_id": ""} == {**usual, "request_id": ""}
    thread = (await ada.get(f"/threads/{place.thread}")).json()
    assert (thread["status"], thread["metadata"]["owner"], "a" in thread["metadata"]) == ("interrupted", "ada", False)
    assert (await ada.get(f"/assistants/{place.assistant}")).json()["version"] == 1


@pytest.mark.promise("P7")
@pytest.mark.parametrize("token", ["open:bob", "nothing:bob"])
@pytest.mark.parametrize(("method", "path", "body"), REACHES)
async def test_control_without_a_filter_every_resource_is_reached(
    guarded: Guarded, token: str, method: str, path: str, body: Any
) -> None:
    place = await adas(guarded)
    response = await reach(guarded, token, place, method, path, body)
    if method == "POST" and "cancel" in path:  # which has ended: found, and nothing to cancel
        assert response.status_code == 404
        assert "not found" not in response.text
    else:
        assert response.status_code in (200, 202, 204), response.text


@pytest.mark.promise("P7")
@pytest.mark.parametrize(
    ("rule", "status", "detail"),
    [
        ("deny", 403, "Forbidden"),
        ("insist", 403, "Forbidden"),
        ("refuse", 402, "pay first"),
        ("fail", 500, "the project's auth handler failed"),
        ("talk", 500, "the project's auth handler failed"),
        ("vague", 500, "the project's auth handler failed"),
        ("spoil", 500, "the project's auth handler failed"),
    ],
)
async def test_refusal_of_a_handler_is_403(guarded: Guarded, rule: str, status: int, detail: str) -> None:
    place = await adas(guarded)
    for method, path, body in [*REACHES, ("POST", "/threads", {}), ("POST", "/threads/search", {})]:
        response = await reach(guarded, f"{rule}:eve", place, method, path, body)
        assert (response.status_code, response.json()["detail"]) == (status, detail), path
        assert SECRET not in response.text


async def test_agent_with_a_key_changes_no_assistant_of_a_user_of_the_auth_file(guarded: Guarded) -> None:
    """The control above: users of the auth file change what its handlers let them."""
    place = await adas(guarded)
    agent = guarded.client(await guarded.key(Kind.AGENT))
    refused = await agent.patch(f"/assistants/{place.assistant}", json={"name": "mine"})
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")


async def test_a_handler_may_allow_some_actions_only(guarded: Guarded) -> None:
    place = await adas(guarded)
    reader = guarded.user("reader:eve")
    assert (await reader.get(f"/threads/{place.thread}")).status_code == 200
    assert len((await reader.post("/threads/search", json={})).json()) == 1
    assert (await reader.post("/threads", json={})).status_code == 403
    assert (await reader.post(f"/threads/{place.thread}/runs", json=RUN)).status_code == 403
    assert (await reader.delete(f"/threads/{place.thread}")).status_code == 403


async def test_searches_and_counts_leave_out_filtered_resources(guarded: Guarded) -> None:
    place = await adas(guarded)
    bobs = (await guarded.user("owner:bob").post("/threads", json={})).json()["thread_id"]
    for token, expected in {
        "owner:ada": {place.thread},
        "owner:bob": {bobs},
        "member:bob": {place.thread},
        "member:zoe": set(),
        "either:bob": {place.thread, bobs},
        "either:eve": {place.thread},
        "open:zoe": {place.thread, bobs},
    }.items():
        who = guarded.user(token)
        body = (await who.post("/threads/search", json={})).json()
        assert {thread["thread_id"] for thread in body} == expected, token
        assert (await who.post("/threads/count", json={})).json() == len(expected), token
        assistants = (await who.post("/assistants/search", json={})).json()
        seen = {assistant["assistant_id"] for assistant in assistants}
        assert (place.assistant in seen) is (place.thread in expected), token
        assert (await who.post("/assistants/count", json={})).json() == len(seen), token


async def test_search_filter_cannot_widen_the_handlers_filter(guarded: Guarded) -> None:
    place = await adas(guarded)
    bob = guarded.user("owner:bob")
    for body in ({"metadata": {"owner": "ada"}}, {"ids": [place.thread]}, {"status": "interrupted"}):
        assert (await bob.post("/threads/search", json=body)).json() == [], body
    assert (await bob.post("/threads/prune", json={"thread_ids": [place.thread]})).json() == {"pruned_count": 0}
    everything = await bob.post("/runs/cancel", json={"status": "all"})
    assert everything.status_code == 404
    assert (await guarded.user("owner:ada").get(f"/threads/{place.thread}")).status_code == 200


async def test_create_with_an_id_of_another_user_is_a_conflict(guarded: Guarded) -> None:
    place = await adas(guarded)
    bob = guarded.user("owner:bob")
    again = {"thread_id": place.thread, "if_exists": "do_nothing"}
    assert (await bob.post("/threads", json=again)).status_code == 409
    same = {"assistant_id": place.assistant, "graph_id": "whoami", "if_exists": "do_nothing"}
    assert (await bob.post("/assistants", json=same)).status_code == 409
    created = {**RUN, "if_not_exists": "create"}
    refused = await bob.post(f"/threads/{place.thread}/runs", json=created)
    assert (refused.status_code, refused.json()["detail"]) == (404, "Thread or assistant not found.")
    assert (await guarded.user("owner:ada").post("/threads", json=again)).status_code == 200


async def test_metadata_written_by_a_handler_is_kept(guarded: Guarded) -> None:
    ada = guarded.user("owner:ada")
    thread = (await ada.post("/threads", json={"metadata": {"owner": "bob", "topic": "x"}})).json()
    assert thread["metadata"] == {"owner": "ada", "topic": "x"}
    patched = (await ada.patch(f"/threads/{thread['thread_id']}", json={"metadata": {"owner": "bob"}})).json()
    assert patched["metadata"]["owner"] == "ada"
    copied = (await ada.post(f"/threads/{thread['thread_id']}/copy")).json()
    assert copied["metadata"] == {"owner": "ada", "topic": "x"}
    created = {"assistant_id": "whoami", "input": {}, "if_not_exists": "create"}
    run = (await ada.post(f"/threads/{NOWHERE}/runs", json=created)).json()
    assert run["metadata"]["owner"] == "ada"
    assert (await ada.get(f"/threads/{NOWHERE}")).json()["metadata"]["owner"] == "ada"
    assistant = (await ada.post("/assistants", json={"graph_id": "whoami"})).json()
    assert assistant["metadata"] == {"owner": "ada"}


async def test_copied_thread_belongs_to_the_user_who_copied_it(guarded: Guarded) -> None:
    place = await adas(guarded)
    ada = guarded.user("owner:ada")
    shared = (await guarded.user("open:bob").post(f"/threads/{place.thread}/copy")).json()
    assert shared["metadata"]["owner"] == "ada"
    mine = (await ada.post(f"/threads/{place.thread}/copy")).json()
    assert mine["metadata"] == {**(await ada.get(f"/threads/{place.thread}")).json()["metadata"]}


async def test_default_assistant_of_a_graph_can_be_run_by_every_user(guarded: Guarded) -> None:
    bob = guarded.user("owner:bob")
    assert (await bob.get(f"/assistants/{own_id('whoami')}")).status_code == 404
    for name in ("whoami", own_id("whoami")):
        answer = await bob.post("/runs/wait", json={"assistant_id": name, "input": {}})
        assert answer.json()["user"]["identity"] == "bob"


async def test_own_credentials_are_limited_by_owners_and_not_by_handlers(guarded: Guarded) -> None:
    place = await adas(guarded)
    person = guarded.client(await guarded.person("pat"))
    assert (await person.get(f"/threads/{place.thread}")).status_code == 200
    assert len((await person.post("/threads/search", json={})).json()) == 1
    agent = guarded.client(await guarded.key(Kind.AGENT))
    assert (await agent.get(f"/threads/{place.thread}")).status_code == 404
    assert (await agent.post("/threads/search", json={})).json() == []


async def test_stock_client_works_with_handlers_on_every_route(guarded: Guarded) -> None:
    sdk = LangGraphClient(guarded.user("owner:ada"))
    thread = await sdk.threads.create(metadata={"topic": "x"})
    state = await sdk.runs.wait(thread["thread_id"], "whoami", input={})
    assert isinstance(state, dict)
    assert state["user"]["identity"] == "ada"
    assert [thread["thread_id"] for thread in await sdk.threads.search()] == [thread["thread_id"]]
    events = [chunk.event async for chunk in sdk.runs.stream(None, "whoami", input={})]
    assert events[:2] == ["metadata", "values"]


@pytest.mark.parametrize(
    ("resource", "action", "expected"),
    [
        ("threads", "create", "threads.create"),
        ("threads", "read", "threads.*"),
        ("threads", "create_run", "threads.create_run"),
        ("assistants", "search", "*.search"),
        ("assistants", "read", "everything"),
        ("store", "put", "store.*"),
    ],
)
async def test_the_most_specific_handler_decides(resource: str, action: str, expected: str) -> None:
    asked: list[tuple[str, str, str, Any]] = []
    auth = handlers(asked)
    caller = await auth.authenticate({})
    await auth.authorize(caller, resource, action, {"thread_id": UUID(NOWHERE)})
    assert asked == [(expected, resource, action, {"thread_id": UUID(NOWHERE)})]


def handlers(asked: list[tuple[str, str, str, Any]]) -> CustomAuth:
    auth = Auth()

    @auth.authenticate
    async def anyone() -> str:
        return "anyone"

    def noting(name: str) -> Any:
        async def note(ctx: Auth.types.AuthContext, value: Any) -> None:
            asked.append((name, ctx.resource, ctx.action, value))

        return note

    auth.on(noting("everything"))
    auth.on.threads(noting("threads.*"))
    auth.on.threads.create(noting("threads.create"))
    auth.on.threads.create_run(noting("threads.create_run"))
    auth.on.store(noting("store.*"))
    auth.on(actions="search")(noting("*.search"))
    return CustomAuth(auth)


async def test_reviewers_see_the_items_that_the_handler_grants_them(guarded: Guarded) -> None:
    """The usual owner filter hides every item from people who started nothing; a handler can tell the inbox apart."""
    ada = guarded.user("team:ada")
    asked: dict[str, str] = {}
    for name in ("red", "blue"):
        thread = (await ada.post("/threads", json={"metadata": {"team": name}})).json()["thread_id"]
        body = {"assistant_id": "whoami", "input": {"ask": True}}
        assert (await ada.post(f"/threads/{thread}/runs/wait", json=body)).status_code == 200
        asked[name] = thread
    tara, otto = guarded.user("team reviewer"), guarded.user("own reviewer")
    assert (await otto.get("/api/inbox/items")).json()["items"] == [], "the control"
    [item] = (await tara.get("/api/inbox/items")).json()["items"]
    assert item["source"]["thread_id"] == asked["red"]
    for thread in asked.values():
        assert (await tara.get(f"/threads/{thread}")).status_code == 404, "a thread is its owner's all the same"
    said = {"revision": item["revision"], "hash": item["hash"], "verb": "respond", "message": "yes"}
    path = f"/api/inbox/items/{item['id']}/decision"
    assert (await otto.post(path, json=said)).status_code == 404
    assert (await tara.post(path, json=said)).status_code == 200
