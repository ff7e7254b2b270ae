"""A secret of a thread's past: it is not read by copying the thread, nor where a later text repeats it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from assent.review.threads.secrets import View
from assent.runs.threads.threads import Threads
from assent.threads.rows.state import checkpoints
from tests.faults.arena import Arena, Json
from tests.graphs_gated.copying import PASSWORD

pytestmark = pytest.mark.promise("P10")

GRAPHS = ("forgetful", "quoting", "discreet")


async def ran(arena: Arena, graph: str, **more: Any) -> str:
    thread = await arena.thread(visibility="shared", **more)
    done = await arena.run(thread, graph, input={"done": "no"} if graph == "discreet" else {"messages": []})
    assert done.status_code == 200, done.text
    return thread


async def past(arena: Arena, client: httpx.AsyncClient, thread: str) -> str:
    """All states of the thread, in every namespace, as the caller reads them."""
    stored = await arena.house.services.store.read(
        "default", checkpoints.history, thread, None, before=None, limit=None
    )
    bodies: list[Json] = [{"checkpoint": {"checkpoint_ns": ns}, "limit": 50} for ns in {one.ns for one in stored}]
    read = [await client.post(f"/threads/{thread}/history", json=body) for body in bodies]
    assert all(response.status_code == 200 for response in read), [one.text for one in read]
    return "".join(one.text for one in read)


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_thread_with_a_secret_in_its_past_is_not_copied_by_another_agent(arena: Arena, graph: str) -> None:
    thread = await ran(arena, graph)
    assert PASSWORD in await past(arena, arena.agent, thread), "control: it is there"
    refused = await arena.other.post(f"/threads/{thread}/copy")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    assert PASSWORD not in refused.text


@pytest.mark.parametrize("graph", GRAPHS)
async def test_thread_with_a_secret_is_copied_by_its_owner_and_people_who_may_reveal(arena: Arena, graph: str) -> None:
    thread = await ran(arena, graph)
    for client in (arena.agent, arena.ana):
        made = await client.post(f"/threads/{thread}/copy")
        assert made.status_code == 200, made.text
        assert PASSWORD in await past(arena, client, made.json()["thread_id"])


async def test_thread_with_a_secret_is_not_copied_by_a_person_outside_the_rule(arena: Arena) -> None:
    rule = {"name": "hers", "tool": "sign_in", "then": "ask", "by": {"people": ["ana"]}}
    await arena.policy({"rules": [rule], "default": {"name": "rest", "then": "ask"}})
    thread = await ran(arena, "forgetful")
    assert (await arena.ben.post(f"/threads/{thread}/copy")).status_code == 403
    assert (await arena.ana.post(f"/threads/{thread}/copy")).status_code == 200


async def test_a_secret_in_the_metadata_of_the_thread_is_not_copied_either(arena: Arena) -> None:
    thread = await arena.thread(visibility="shared", metadata={"api_key": PASSWORD})
    assert PASSWORD not in (await arena.other.get(f"/threads/{thread}")).text
    assert (await arena.other.post(f"/threads/{thread}/copy")).status_code == 403


async def test_a_thread_without_secrets_is_copied_by_another_agent(arena: Arena) -> None:
    thread = await arena.thread(visibility="shared")
    await arena.run(thread, "nested", input={"log": str(arena.log), "tag": "asked"})
    made = await arena.other.post(f"/threads/{thread}/copy")
    assert made.status_code == 200, made.text
    assert (await arena.item(made.json()["thread_id"]))["dialect"] == "breakpoint"


async def test_state_added_during_the_check_is_not_copied(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = await arena.thread(visibility="shared", metadata={"graph_id": "forgetful"})

    async def meanwhile(*_: Any) -> bool:
        await arena.run(thread, "forgetful", input={"messages": []})
        return False

    monkeypatch.setattr(Threads, "_ever_held", meanwhile)
    assert (await arena.other.post(f"/threads/{thread}/copy")).status_code == 409


@pytest.mark.parametrize("graph", GRAPHS)
async def test_control_without_the_defence_the_copy_shows_the_secret(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, graph: str
) -> None:
    async def nothing(*_: Any) -> bool:
        return False

    monkeypatch.setattr(Threads, "_ever_held", nothing)
    thread = await ran(arena, graph)
    copy = (await arena.other.post(f"/threads/{thread}/copy")).json()["thread_id"]
    assert PASSWORD in await past(arena, arena.other, copy)


async def test_a_text_that_repeats_a_secret_of_an_older_state_is_covered_in_the_same_answer(arena: Arena) -> None:
    thread = await ran(arena, "quoting")
    assert PASSWORD not in await past(arena, arena.other, thread)
    assert PASSWORD in await past(arena, arena.agent, thread), "control: it is there"


async def test_control_masking_each_state_alone_shows_the_secret_in_the_newest(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def one_by_one(view: View, values: Any, *, pick: Any) -> list[Any]:
        return [await view.of(one, pick=pick) for one in values]

    monkeypatch.setattr(View, "each", one_by_one)
    assert PASSWORD in await past(arena, arena.other, await ran(arena, "quoting"))
