"""A secret of another agent's call is neither guessed nor revealed.

A text is masked only for the secrets that its author may see, and a requester reveals on threads of its own only.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.review.model.secrets import MASK
from assent.review.rows import secrets
from assent.review.threads import chosen_ids
from tests.faults.arena import Arena, Json, open_arena

pytestmark = pytest.mark.promise("P10")

GRAPHS = Path(__file__).parents[1] / "graphs_secrets" / "langgraph.json"
SECRET = "4711"
GUESSES = "\n".join(f"{number:04}" for number in range(4_000, 6_000))
RULE = {"name": "hers", "tool": "log_in", "then": "ask", "by": {"people": ["ana"]}}


@pytest.fixture(scope="module")
async def secretive(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    async with open_arena(tmp_path_factory.mktemp("secretive"), module_database, config=GRAPHS) as arena:
        await arena.policy({"rules": [RULE], "default": {"name": "rest", "then": "ask"}})
        yield arena


async def asked(arena: Arena, **thread: Any) -> Json:
    """An item whose call has the secret, which only its owner and ana may see."""
    thread_id = await arena.thread(**thread)
    call = [{"name": "log_in", "args": {"user": "u", "password": SECRET}}]
    await arena.run(thread_id, "gated", input={"messages": [{"role": "user", "content": json.dumps(call)}]})
    return await arena.item(thread_id)


async def commented(client: httpx.AsyncClient, item: Json, text: str) -> list[str]:
    """The text of the caller as every view returns it."""
    url = f"/api/inbox/items/{item['id']}"
    made = await client.post(f"{url}/comments", json={"text": text})
    assert made.status_code == 201, made.text
    comments, told = (await client.get(f"{url}/comments")).json(), (await client.get(f"{url}/timeline")).json()
    return [made.json()["text"], comments[-1]["text"], told[-1]["payload"]["text"]]


async def test_comment_of_another_agent_is_shown_as_typed(secretive: Arena) -> None:
    item = await asked(secretive)
    read = await secretive.other.get(f"/api/inbox/items/{item['id']}")
    assert SECRET not in json.dumps(read.json()["actions"])
    assert await commented(secretive.other, item, GUESSES) == [GUESSES] * 3


async def test_thread_of_another_agent_does_not_take_the_id_of_a_deleted_one(secretive: Arena) -> None:
    item = await asked(secretive)
    thread = {"thread_id": item["source"]["thread_id"]}
    assert (await secretive.agent.delete(f"/threads/{thread['thread_id']}")).status_code == 204
    assert (await secretive.other.post("/threads", json=thread)).status_code == 409
    assert await commented(secretive.other, item, GUESSES) == [GUESSES] * 3
    assert (await secretive.agent.post("/threads", json=thread)).status_code == 200, "its own agent may"


async def test_control_owner_of_the_id_of_a_deleted_thread_learns_its_secrets(
    secretive: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen_ids, "require_free", lambda *_: None)
    item = await asked(secretive)
    thread = {"thread_id": item["source"]["thread_id"]}
    assert (await secretive.agent.delete(f"/threads/{thread['thread_id']}")).status_code == 204
    assert (await secretive.other.post("/threads", json=thread)).status_code == 200
    assert MASK in (await commented(secretive.other, item, GUESSES))[0]


async def test_comment_of_a_person_outside_the_rule_is_shown_as_typed(secretive: Arena) -> None:
    item = await asked(secretive)
    assert await commented(secretive.ben, item, GUESSES) == [GUESSES] * 3


async def test_comments_of_the_owner_and_of_a_decider_are_masked(secretive: Arena) -> None:
    item = await asked(secretive)
    for client in (secretive.agent, secretive.ana):
        assert await commented(client, item, f"is {SECRET} right?") == [f"is {MASK} right?"] * 3


async def test_comment_of_a_decider_is_masked_on_the_item_of_another_decider(secretive: Arena) -> None:
    """A comment is masked for the secrets of all items of the thread that its author may decide."""
    arena = secretive
    item = await asked(arena)
    await arena.policy({"default": {"name": "his", "then": "ask", "by": {"people": ["ben"]}}})
    await arena.decide(item, "reject")
    thread = item["source"]["thread_id"]
    await arena.rests(thread)
    call = [{"name": "log_in", "args": {"user": "u", "password": "c4nary"}}]
    await arena.run(thread, "gated", input={"messages": [{"role": "user", "content": json.dumps(call)}]})
    [later] = await arena.items(thread)
    await arena.policy({"rules": [RULE], "default": {"name": "rest", "then": "ask"}})
    assert await commented(arena.ana, later, f"{SECRET} c4nary") == [f"{MASK} c4nary"] * 3
    assert await commented(arena.ben, later, f"{SECRET} c4nary") == [f"{SECRET} {MASK}"] * 3


async def test_draft_of_another_agent_is_shown_as_typed(secretive: Arena) -> None:
    item = await asked(secretive)
    url = f"/api/inbox/items/{item['id']}"
    for client, shown in ((secretive.other, GUESSES), (secretive.ana, GUESSES.replace(SECRET, MASK))):
        saved = await client.put(f"{url}/draft", json={"draft": {"note": GUESSES}})
        assert saved.json()["draft"] == {"note": shown}
        assert (await client.get(url)).json()["draft"] == {"note": shown}


async def test_notes_of_a_requester_who_is_not_the_owner_are_shown_as_typed(secretive: Arena) -> None:
    """An agent that replays another's shared thread is the requester of what it asks, and may cancel it."""
    arena = secretive
    item = await replayed(arena, await asked(arena, visibility="shared"))
    url = f"/api/inbox/items/{item['id']}"
    ended = await arena.other.post(f"{url}/cancellation", json={"notes": GUESSES})
    assert ended.status_code == 200, ended.text
    [told] = [event for event in (await arena.other.get(f"{url}/timeline")).json() if event["kind"] == "item.cancelled"]
    assert told["payload"]["notes"] == GUESSES


async def test_audit_search_and_export_show_guesses_as_typed(secretive: Arena) -> None:
    item = await asked(secretive)
    await commented(secretive.other, item, f"unique guess {SECRET}")
    admin = await secretive.house.admin()
    found = (await admin.get("/api/audit/events", params={"text": f"unique guess {SECRET}"})).json()["items"]
    assert [event["kind"] for event in found] == ["item.commented"]
    lines = map(json.loads, (await admin.get("/api/audit/export")).text.splitlines())
    [exported] = [line for line in lines if line.get("kind") == "item.commented" and "unique" in str(line)]
    assert not exported.get("withheld")


async def test_requester_who_is_not_the_owner_of_the_thread_does_not_reveal(secretive: Arena) -> None:
    arena = secretive
    item = await replayed(arena, await asked(arena, visibility="shared"))
    url = f"/api/inbox/items/{item['id']}"
    refused = await arena.other.post(f"{url}/reveal")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    assert SECRET not in refused.text
    assert "reveal" not in (await arena.other.get(url)).json()["can"]
    [shown] = (await arena.ana.post(f"{url}/reveal")).json()
    assert shown["args"]["password"] == SECRET


async def test_requester_reveals_on_a_thread_of_its_own(secretive: Arena) -> None:
    item = await asked(secretive, visibility="shared")
    url = f"/api/inbox/items/{item['id']}"
    assert "reveal" in (await secretive.agent.get(url)).json()["can"]
    [shown] = (await secretive.agent.post(f"{url}/reveal")).json()
    assert shown["args"]["password"] == SECRET


async def test_control_requester_of_any_thread_reveals_without_the_check_of_its_owner(
    secretive: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = await replayed(secretive, await asked(secretive, visibility="shared"))
    monkeypatch.setattr(secrets, "owns", lambda tx, actor, item: actor == item.requester)
    [shown] = (await secretive.other.post(f"/api/inbox/items/{item['id']}/reveal")).json()
    assert shown["args"]["password"] == SECRET


async def test_control_masking_of_all_secrets_tells_which_guess_is_one(
    secretive: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "known_items", lambda tx, item, actor: secrets.asked_with(tx, item))
    item = await asked(secretive)
    for text in await commented(secretive.other, item, GUESSES):
        missing = [guess for guess, line in zip(GUESSES.split(), text.split(), strict=True) if line != guess]
        assert missing == [SECRET]


async def replayed(arena: Arena, item: Json) -> Json:
    """The same question, asked by a run of another agent on the shared thread."""
    thread = item["source"]["thread_id"]
    await arena.decide(item, "reject")
    await arena.rests(thread)
    past = (await arena.other.get(f"/threads/{thread}/history?limit=50")).json()
    before = next(state for state in past if state["next"] == ["tools"])["checkpoint"]["checkpoint_id"]
    done = await arena.run(thread, "gated", arena.other, checkpoint_id=before, input=None)
    assert done.status_code == 200, done.text
    again = await arena.item(thread)
    assert again["requester"] == await arena.actor(arena.other)
    return again
