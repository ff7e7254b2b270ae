"""The threads of other deployments have ids here, and their questions the rules of the inbox."""

from __future__ import annotations

import json

import httpx
import pytest

from assent.review.model.items import Item
from assent.review.threads import chosen_ids, decided
from tests.faults.arena import Arena, Json
from tests.faults.far import GRAPH, PAY, Far, call
from tests.waiting import until

CLARIFICATION = {"type": "clarification", "message": "Which account?"}


async def taken(client: httpx.AsyncClient, thread_id: str, how: str) -> httpx.Response:
    """The caller makes a thread with this id, by each route that makes one."""
    if how == "thread":
        return await client.post("/threads", json={"thread_id": thread_id, "if_exists": "do_nothing"})
    run = {"assistant_id": "stopping", "input": {}, "if_not_exists": "create"}
    return await client.post(f"/threads/{thread_id}/runs/wait", json=run)


@pytest.mark.promise("P6")
@pytest.mark.parametrize("how", ["thread", "run"])
async def test_agent_does_not_take_the_id_of_a_thread_elsewhere(following: tuple[Arena, Far], how: str) -> None:
    arena, far = following
    for asked in (PAY, CLARIFICATION):
        item = await far.item(arena, far.ask(asked))
        here = item["source"]["thread_id"]
        assert (await taken(arena.other, here, how)).status_code == 409
        assert (await arena.other.delete(f"/threads/{here}")).status_code == 404
        assert (await arena.decide(item, "respond", arena.other, message="mine")).status_code == 403
        assert (await arena.ana.get(f"/api/inbox/items/{item['id']}")).json()["status"] == "PENDING"


@pytest.mark.promise("P6")
async def test_control_owner_of_that_id_ends_the_question(
    following: tuple[Arena, Far], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena, far = following
    monkeypatch.setattr(chosen_ids, "require_free", lambda *_: None)
    item = await far.item(arena, far.ask(PAY))
    here = item["source"]["thread_id"]
    assert (await taken(arena.other, here, "thread")).status_code == 200
    assert (await arena.other.delete(f"/threads/{here}")).status_code == 204
    assert (await arena.ana.get(f"/api/inbox/items/{item['id']}")).json()["status"] == "CANCELLED"


async def influenced(arena: Arena, far: Far, how: str) -> Json:
    """A question that the deployment asked after ana told it something."""
    thread_id = far.ask(PAY)
    item = await far.item(arena, thread_id)
    far.then.append(call("pay", amount=9_999))
    seen, url = {"revision": item["revision"], "hash": item["hash"]}, f"/api/inbox/items/{item['id']}"
    if how == "comment":
        await arena.ana.post(f"{url}/comments", json={"text": "pay ana 9,999"})
        sent = await arena.decide(item, "approve", arena.ben)
    elif how == "revision":
        sent = await arena.ana.post(f"{url}/revision-request", json={**seen, "notes": "pay ana 9,999"})
    else:
        sent = await arena.decide(item, "reject", message="pay ana 9,999")
    assert sent.status_code == 200, sent.text
    later = await wait_for_other(arena, far, thread_id, item)
    assert later["actions"][0]["args"] == {"amount": 9_999}
    return later


async def wait_for_other(arena: Arena, far: Far, thread_id: str, item: Json) -> Json:
    async def asked_again() -> bool:
        question = far.asked[thread_id]
        return question is not None and question["id"] != item["source"]["interrupt_id"]

    await until(asked_again, "the answer does not reach the deployment")
    return await far.item(arena, thread_id)


@pytest.mark.promise("P6")
@pytest.mark.parametrize("how", ["comment", "revision", "reason"])
async def test_person_who_influenced_a_thread_elsewhere_does_not_decide_its_next_question(
    following: tuple[Arena, Far], how: str
) -> None:
    arena, far = following
    await arena.policy({"default": {"name": "apart", "then": "ask", "separate_duties": True}})
    item = await influenced(arena, far, how)
    refused = await arena.decide(item, "approve")
    assert (refused.status_code, refused.json()["code"]) == (403, "self_approval")
    assert (await arena.decide(item, "approve", arena.ben)).status_code == 200


@pytest.mark.promise("P6")
async def test_control_without_contributors_that_person_decides(
    following: tuple[Arena, Far], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena, far = following
    monkeypatch.setattr(decided, "note_contribution", lambda *_: None)
    await arena.policy({"default": {"name": "apart", "then": "ask", "separate_duties": True}})
    item = await influenced(arena, far, "revision")
    assert (await arena.decide(item, "approve")).status_code == 200


async def always_allowed(arena: Arena, far: Far) -> tuple[Json, httpx.Response]:
    """A question of a deployment whose graph has the name of one here, and the response to a standing approval."""
    await arena.policy({"default": {"name": "rest", "then": "ask"}})
    item = await far.item(arena, far.ask(call("act", tag="harmless")))
    admin = arena.house.client(await arena.house.key_of("admin"))
    seen = {"item_id": item["id"], "revision": item["revision"], "hash": item["hash"]}
    terms = {**seen, "lifetime_seconds": 3600, "same_args": False}
    return item, await admin.post("/api/standing-approvals", json=terms)


async def call_here(arena: Arena, tag: str) -> str:
    """A call of the graph here; its thread."""
    thread, calls = await arena.thread(), [{"name": "act", "args": {"log": str(arena.log), "tag": tag}}]
    await arena.run(thread, GRAPH["graph_id"], input={"messages": [{"role": "user", "content": json.dumps(calls)}]})
    await arena.rests(thread)
    return thread


@pytest.mark.promise("P1")
async def test_question_elsewhere_gives_no_standing_approval(following: tuple[Arena, Far]) -> None:
    arena, far = following
    item, refused = await always_allowed(arena, far)
    assert refused.status_code == 422, refused.text
    admin = arena.house.client(await arena.house.key_of("admin"))
    assert "allow_always" not in (await admin.get(f"/api/inbox/items/{item['id']}")).json()["can"]
    await arena.item(await call_here(arena, "unseen"))
    assert "unseen" not in arena.effects


@pytest.mark.promise("P1")
async def test_control_such_an_approval_lets_calls_of_the_graph_here_run(
    following: tuple[Arena, Far], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena, far = following
    monkeypatch.setattr(Item, "called_here", True)
    _, given = await always_allowed(arena, far)
    assert given.status_code == 201, given.text
    await call_here(arena, "allowed elsewhere")
    assert "allowed elsewhere" in arena.effects


async def test_review_of_a_deployment_is_not_that_of_an_agent_here(following: tuple[Arena, Far]) -> None:
    """The deployment chose the name of its graph, which may be that of an agent of the registry."""
    arena, far = following
    admin = arena.house.client(await arena.house.key_of("admin"))
    named = {"name": GRAPH["graph_id"], "human": "ana", "source": "system"}
    assert (await admin.post("/api/agents", json=named)).status_code == 201
    review = await far.item(arena, far.ask({"kind": "workspace_review", "body": "Look at my work."}))
    assert (review["recipient"], review["routing"]["agent"]) == (None, None)
    assert review["title"] == "Workspace review (unrouted): Look at my work."
    assert (await far.item(arena, far.ask("Which account?")))["dialect"] == "raw", "only an agent here asks for reviews"
