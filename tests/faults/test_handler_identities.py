"""A user of the project's auth handler is nobody else: not the person or the agent that a rule names."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from assent.identity import access
from assent.identity.model.access import Kind, Role
from assent.review.decisions import rights
from assent.review.model.policies import Decider
from assent.review.model.secrets import MASK
from tests.faults.arena import Arena, Json, open_arena

pytestmark = pytest.mark.promise("P6")

GUARD = '''
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str | None) -> dict:
    """As with any identity provider: the subject is given, the display name is what the user typed into a profile."""
    if not authorization:
        raise Auth.exceptions.HTTPException(status_code=401, detail="no token")
    subject, name = authorization.removeprefix("Bearer ").split("|")
    return {"identity": subject, "display_name": name, "permissions": [] if name == "bot" else ["assent:decide"]}
'''
GRAPH = """
from typing import TypedDict

from langgraph.graph import START, StateGraph

from assent import gated


class State(TypedDict, total=False):
    log: str


@gated
def pay(amount: int, password: str, log: str) -> str:
    with open(log, "a") as file:
        file.write(f"paid {amount}\\n")
    return "paid"


def work(state: State) -> State:
    pay(amount=5, password="correct-horse-9", log=state["log"])
    return {}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
graph = builder.compile()
"""
REST = {"name": "rest", "then": "ask"}


@pytest.fixture(scope="module")
async def guarded(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "guard.py").write_text(GUARD)
    (folder / "paying_graph.py").write_text(GRAPH)
    graphs = {"paying": "./paying_graph.py:graph"}
    project = {"dependencies": ["."], "graphs": graphs, "auth": {"path": "./guard.py:auth"}}
    (folder / "langgraph.json").write_text(json.dumps(project))
    async with open_arena(folder, module_database, config=folder / "langgraph.json") as arena:
        yield arena


def user(arena: Arena, identity: str, name: str) -> httpx.AsyncClient:
    return arena.house.client(headers={"authorization": f"Bearer {identity}|{name}"})


async def asked(arena: Arena, *people: str) -> Json:
    """A call that only these people may decide."""
    rule = {"name": "theirs", "tool": "pay", "then": "ask", "by": {"people": list(people)}}
    await arena.policy({"rules": [rule], "default": REST})
    return await arena.item(await arena.stopped("paying"))


async def test_display_name_does_not_make_a_user_the_person_that_a_rule_names(guarded: Arena) -> None:
    item, before = await asked(guarded, "ana"), len(guarded.effects)
    mallory = user(guarded, "mallory-1", "ana")
    shown = await mallory.post(f"/api/inbox/items/{item['id']}/reveal")
    said = await guarded.decide(item, "approve", mallory)
    assert (shown.status_code, said.status_code) == (403, 403)
    await guarded.rests(item["source"]["thread_id"])
    assert len(guarded.effects) == before


@pytest.mark.promise("P10")
async def test_comment_of_a_user_outside_the_rule_tells_no_secret(guarded: Arena) -> None:
    """A text is masked for the secrets that its author may see: others would learn which of their guesses is one."""
    item, typed = await asked(guarded, "sso:alice"), "battery-staple-1 or correct-horse-9?"
    url = f"/api/inbox/items/{item['id']}/comments"
    said = await user(guarded, "sso:mallory", "Mallory").post(url, json={"text": typed})
    assert said.json()["text"] == typed
    said = await user(guarded, "sso:alice", "Alice").post(url, json={"text": typed})
    assert said.json()["text"] == typed.replace("correct-horse-9", MASK)


async def test_identity_makes_a_user_the_person_that_a_rule_names(guarded: Arena) -> None:
    item = await asked(guarded, "sso:alice")
    said = await guarded.decide(item, "approve", user(guarded, "sso:alice", "Alice"))
    assert said.status_code == 200, said.text


async def test_control_by_the_display_name_a_user_decides_as_the_person(
    guarded: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "_decider", lambda caller, _: Decider(caller.id, caller.name, Role.REVIEWER))
    said = await guarded.decide(await asked(guarded, "ana"), "approve", user(guarded, "mallory-1", "ana"))
    assert said.status_code == 200, said.text


async def test_user_with_the_id_of_a_stored_person_is_refused(guarded: Arena) -> None:
    ana = (await guarded.actor(guarded.ana)).removeprefix("reviewer:")
    for name in ("Mallory", "bot"):
        refused = await user(guarded, ana, name).get("/api/inbox/items")
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
        assert "is that of a stored person" in refused.json()["detail"]


async def test_user_with_the_name_of_a_stored_person_is_refused(guarded: Arena) -> None:
    item = await asked(guarded, "ana")
    refused = await guarded.decide(item, "approve", user(guarded, "ana", "Mallory"))
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    assert "is that of a stored person" in refused.json()["detail"]
    assert (await user(guarded, "ana", "bot").post("/threads", json={})).status_code == 200, "rules name agents apart"


@pytest.mark.parametrize("by", ["id", "name"])
async def test_control_unchecked_identity_decides_as_the_stored_person(
    guarded: Arena, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setattr(access, "_require_own_identity", lambda tx, user: None)
    guarded.house.services.access.forget()
    ana = (await guarded.actor(guarded.ana)).removeprefix("reviewer:") if by == "id" else "ana"
    said = await guarded.decide(await asked(guarded, "ana"), "approve", user(guarded, ana, "Mallory"))
    guarded.house.services.access.forget()
    assert said.status_code == 200, said.text


async def test_agent_with_the_id_or_name_of_a_stored_key_is_refused(guarded: Arena) -> None:
    names = {(await guarded.actor(guarded.agent)).removeprefix("agent:"), await key_name(guarded)}
    for identity in names:
        refused = await user(guarded, identity, "bot").post("/threads", json={})
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
        assert "is that of a stored agent" in refused.json()["detail"]


async def test_agent_is_the_one_that_a_rule_names_if_no_stored_key_has_its_identity(guarded: Arena) -> None:
    for identity, asks in (("sso:payer", True), ("sso:other", False)):
        assert bool(await questions_of(guarded, identity, {"agent": "sso:payer"})) is asks


async def questions_of(arena: Arena, identity: str, only: dict[str, Any]) -> list[Json]:
    """The questions of an agent of the handler, where every other agent is forbidden to pay."""
    named = {"name": "its own", "tool": "pay", "then": "ask", **only}
    await arena.policy({"rules": [named, {"name": "nobody else", "tool": "pay", "then": "never"}], "default": REST})
    bot = user(arena, identity, "bot")
    thread = await arena.thread(bot)
    await arena.run(thread, "paying", bot, input={"log": str(arena.log)})
    await arena.rests(thread)
    return await arena.items(thread)


async def key_name(arena: Arena) -> str:
    admin = arena.house.client(await arena.house.person("root", Role.ADMIN))
    keys = (await admin.get("/api/keys")).json()["items"]
    return next(str(key["name"]) for key in keys if key["kind"] == Kind.AGENT)
