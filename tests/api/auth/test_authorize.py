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

from assent.domain.access import Kind
from assent.domain.assistants import own_id
from assent.services.custom_auth import CustomAuth
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
    later = {one for one in served if "crons" in one[1] or one[1].endswith(("/commands", "/stream/events"))}
    without_ids = {("POST", f"/{noun}/{verb}") for noun in ("threads", "assistants") for verb in ("search", "count")}
    assert served - later - without_ids - {("POST", "/threads/prune")} == listed


@pytest.mark.promise("P7")
@pytest.mark.parametrize(("method", "path", "body"), REACHES)
async def test_what_the_filter_does_not_show_is_not_there(guarded: Guarded, method: str, path: str, body: Any) -> None:
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
async def test_control_without_a_filter_all_of_it_is_reached(
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
async def test_what_a_handler_refuses_is_refused(guarded: Guarded, rule: str, status: int, detail: str) -> None:
    place = await adas(guarded)
    for method, path, body in [*REACHES, ("POST", "/threads", {}), ("POST", "/threads/search", {})]:
        response = await reach(guarded, f"{rule}:eve", place, method, path, body)
        assert (response.status_code, response.json()["detail"]) == (status, detail), path
        assert SECRET not in response.text


async def test_a_handler_may_allow_some_actions_only(guarded: Guarded) -> None:
    place = await adas(guarded)
    reader = guarded.user("reader:eve")
    assert (await reader.get(f"/threads/{place.thread}")).status_code == 200
    assert len((await reader.post("/threads/search", json={})).json()) == 1
    assert (await reader.post("/threads", json={})).status_code == 403
    assert (await reader.post(f"/threads/{place.thread}/runs", json=RUN)).status_code == 403
    assert (await reader.delete(f"/threads/{place.thread}")).status_code == 403


async def test_searches_and_counts_leave_out_what_is_not_shown(guarded: Guarded) -> None:
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
        found = (await who.post("/threads/search", json={})).json()
        assert {thread["thread_id"] for thread in found} == expected, token
        assert (await who.post("/threads/count", json={})).json() == len(expected), token
        assistants = (await who.post("/assistants/search", json={})).json()
        seen = {assistant["assistant_id"] for assistant in assistants}
        assert (place.assistant in seen) is (place.thread in expected), token
        assert (await who.post("/assistants/count", json={})).json() == len(seen), token


async def test_a_search_cannot_ask_for_more_than_is_shown(guarded: Guarded) -> None:
    place = await adas(guarded)
    bob = guarded.user("owner:bob")
    for body in ({"metadata": {"owner": "ada"}}, {"ids": [place.thread]}, {"status": "interrupted"}):
        assert (await bob.post("/threads/search", json=body)).json() == [], body
    assert (await bob.post("/threads/prune", json={"thread_ids": [place.thread]})).json() == {"pruned_count": 0}
    everything = await bob.post("/runs/cancel", json={"status": "all"})
    assert everything.status_code == 404
    assert (await guarded.user("owner:ada").get(f"/threads/{place.thread}")).status_code == 200


async def test_an_id_that_is_taken_is_not_handed_over(guarded: Guarded) -> None:
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


async def test_what_handlers_write_into_metadata_is_kept(guarded: Guarded) -> None:
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


async def test_a_copy_belongs_to_who_made_it(guarded: Guarded) -> None:
    place = await adas(guarded)
    ada = guarded.user("owner:ada")
    shared = (await guarded.user("open:bob").post(f"/threads/{place.thread}/copy")).json()
    assert shared["metadata"]["owner"] == "ada"
    mine = (await ada.post(f"/threads/{place.thread}/copy")).json()
    assert mine["metadata"] == {**(await ada.get(f"/threads/{place.thread}")).json()["metadata"]}


async def test_a_graphs_own_assistant_is_everyones_to_run(guarded: Guarded) -> None:
    bob = guarded.user("owner:bob")
    assert (await bob.get(f"/assistants/{own_id('whoami')}")).status_code == 404
    for name in ("whoami", own_id("whoami")):
        answer = await bob.post("/runs/wait", json={"assistant_id": name, "input": {}})
        assert answer.json()["user"]["identity"] == "bob"


async def test_credentials_of_ours_are_limited_by_their_scopes_alone(guarded: Guarded) -> None:
    place = await adas(guarded)
    agent = guarded.client(await guarded.key(Kind.AGENT))
    assert (await agent.get(f"/threads/{place.thread}")).status_code == 200
    assert len((await agent.post("/threads/search", json={})).json()) == 1


async def test_the_stock_client_works_through_all_of_it(guarded: Guarded) -> None:
    sdk = LangGraphClient(guarded.user("owner:ada"))
    thread = await sdk.threads.create(metadata={"topic": "x"})
    state = await sdk.runs.wait(thread["thread_id"], "whoami", input={})
    assert isinstance(state, dict)
    assert state["user"]["identity"] == "ada"
    assert [found["thread_id"] for found in await sdk.threads.search()] == [thread["thread_id"]]
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
