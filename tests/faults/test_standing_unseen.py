"""A standing approval covers the revision that its author was shown, and no other."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from assent.identity.model.access import Role
from assent.review.policy import policies
from tests.faults.arena import Arena, Json

pytestmark = pytest.mark.promise("P5")


async def edited_behind(arena: Arena) -> tuple[httpx.AsyncClient, Json]:
    """An administrator, and an item as they were shown it: since then ben has edited and approved it."""
    admin = arena.house.client(await arena.house.person(f"admin of {arena.log.parent.name}", Role.ADMIN))
    thread = await arena.stopped("wiring")
    item = await arena.item(thread)
    shown = (await admin.get(f"/api/inbox/items/{item['id']}")).json()
    [action] = shown["actions"]
    edit = {"key": action["key"], "verb": "edit", "args": {**action["args"], "tag": "mallory"}}
    assert (await arena.decide(item, "edit", arena.ben, actions=[edit])).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["mallory"]
    return admin, shown


async def given(admin: httpx.AsyncClient, item: Json, **body: Any) -> httpx.Response:
    return await admin.post("/api/standing-approvals", json={"item_id": item["id"], "lifetime_seconds": 3600, **body})


async def call_again(arena: Arena) -> None:
    thread = await arena.thread()
    given = {"log": str(arena.log), "tag": "x"}
    await arena.run(thread, "wiring", input=given, config={"configurable": {"account": "mallory"}})
    await arena.rests(thread)


async def test_standing_approval_of_a_revision_that_was_not_shown_is_refused(arena: Arena) -> None:
    admin, shown = await edited_behind(arena)
    refused = await given(admin, shown, revision=shown["revision"], hash=shown["hash"])
    assert (refused.status_code, refused.json()["code"]) == (409, "stale_revision")
    await call_again(arena)
    assert arena.effects == ["mallory"]


async def test_standing_approval_without_revision_and_hash_is_refused(arena: Arena) -> None:
    admin, shown = await edited_behind(arena)
    for named in ({}, {"revision": shown["revision"]}, {"hash": shown["hash"]}):
        assert (await given(admin, shown, **named)).status_code == 422
    await call_again(arena)
    assert arena.effects == ["mallory"]


async def test_standing_approval_of_the_shown_revision_lets_the_call_run(arena: Arena) -> None:
    admin, shown = await edited_behind(arena)
    now = (await admin.get(f"/api/inbox/items/{shown['id']}")).json()
    made = await given(admin, now, revision=now["revision"], hash=now["hash"])
    assert made.status_code == 201, made.text
    await call_again(arena)
    assert arena.effects == ["mallory", "mallory"]
    for approval in made.json():
        await admin.delete(f"/api/standing-approvals/{approval['id']}")


async def test_control_without_the_check_the_call_runs_with_arguments_nobody_was_shown(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "require_seen", lambda item, revision, hash: None)
    admin, shown = await edited_behind(arena)
    made = await given(admin, shown, revision=shown["revision"], hash=shown["hash"])
    await call_again(arena)
    assert arena.effects == ["mallory", "mallory"]
    for approval in made.json():
        await admin.delete(f"/api/standing-approvals/{approval['id']}")
