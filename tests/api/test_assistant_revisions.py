"""`/resume` approves only the revision that it has shown to the person, also after changes by others."""

import asyncio
from typing import Any

import httpx
import pytest

from assent.assistant.talk import service
from assent.identity.model.access import operator
from assent.settings import Mode
from tests.api.house import Builder, House
from tests.api.talking import GRAPHS, NO, SECRET_KEY, YES, Body, Talk, approvals, talk

__all__ = ["talk"]

TWO = {"default": {"name": "two", "then": "ask", "approvals": 2}}
OTHER = {"name": "Standup", "minutes": 999}


@pytest.fixture
async def house(build_on_both: Builder) -> House:
    return await build_on_both(Mode.SERVE, config=GRAPHS, secret_key=SECRET_KEY, assistant="scripted")


async def edited(talk: Talk, editor: httpx.AsyncClient, args: Body = OTHER) -> Body:
    """What the editor makes of the item that waits."""
    [item] = await talk.items()
    body = (await editor.get(f"/api/inbox/items/{item['id']}")).json()
    first, *rest = body["actions"]
    said = [
        {"key": first["key"], "verb": "edit", "args": args},
        *({"key": one["key"], "verb": "approve"} for one in rest),
    ]
    seen = {"revision": body["revision"], "hash": body["hash"]}
    made = await editor.post(f"/api/inbox/items/{item['id']}/decision", json={**seen, "actions": said})
    assert made.status_code == 200, made.text
    changed: Body = made.json()
    assert (changed["status"], changed["revision"]) == ("PENDING", body["revision"] + 1)
    return changed


async def by_another(talk: Talk) -> tuple[Body, Body]:
    """What ana was asked, and what ben has made of it."""
    await talk.house.services.policies.put(operator(), TWO)
    ben = talk.house.client(await talk.house.person("ben"))
    action = await talk.asked("confirm")
    return action, await edited(talk, ben)


async def refuses_what_was_not_shown(talk: Talk) -> None:
    action, changed = await by_another(talk)
    refused = await talk.resume(approvals=approvals(action, YES, YES))
    body = refused.json()
    assert (refused.status_code, body["code"]) == (409, "stale_revision"), refused.text
    assert (body["revision"], body["hash"]) == (2, changed["hash"])
    assert body["pending_action"]["tool_calls"][0]["arguments"] == OTHER
    [item] = await talk.items()
    assert (item["revision"], item["approvals"]["given"]) == (2, 1)
    assert await talk.done() == []
    agreed = await talk.resume(approvals=approvals(body["pending_action"], YES, YES))
    assert agreed.status_code == 200, agreed.text
    assert (await talk.done())[0] == OTHER


@pytest.mark.promise("P5")
async def test_change_by_another_reviewer_is_shown_before_approval(talk: Talk) -> None:
    await refuses_what_was_not_shown(talk)


async def test_control_without_the_check_an_unseen_change_is_approved(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    monkeypatch.setattr(service, "is_meant", lambda tx, caller, asked: True)
    action, _ = await by_another(talk)
    assert (await talk.resume(approvals=approvals(action, YES, YES))).status_code == 200
    assert (await talk.done())[0] == OTHER


@pytest.mark.promise("P5")
async def test_change_shown_to_its_author_is_not_counted_as_shown_to_others(talk: Talk) -> None:
    """The change itself came by `/resume`, which showed it to its author."""
    await talk.house.services.policies.put(operator(), TWO)
    ben = talk.house.client(await talk.house.person("ben"))
    action = await talk.asked("confirm")
    said = approvals(action, {**YES, "arguments": OTHER}, YES)
    half = await ben.post("/resume", json={"thread_id": talk.thread, "approvals": said})
    assert half.status_code == 202, half.text
    refused = await talk.resume(approvals=approvals(action, YES, YES))
    assert (refused.status_code, refused.json()["code"]) == (409, "stale_revision")


@pytest.mark.promise("P5")
@pytest.mark.parametrize("look", ["thread", "state", "search", "inbox"])
async def test_reading_the_thread_or_the_inbox_does_not_count_as_shown(talk: Talk, look: str) -> None:
    """A thread shows what the agent asked, not what a reviewer made of it; `/resume` counts on what it said itself."""
    action, changed = await by_another(talk)
    thread_id = (await talk.state())["thread_id"]
    addresses = {"thread": f"/threads/{thread_id}", "state": f"/threads/{thread_id}/state"}
    if look == "search":
        await talk.client.post("/threads/search", json={})
    else:
        await talk.client.get(addresses.get(look, f"/api/inbox/items/{changed['id']}"))
    refused = await talk.resume(approvals=approvals(action, YES, YES))
    assert (refused.status_code, refused.json()["code"]) == (409, "stale_revision")


@pytest.mark.promise("P5")
async def test_rejection_of_an_unseen_change_is_refused(talk: Talk) -> None:
    action, _ = await by_another(talk)
    assert (await talk.resume(approvals=approvals(action, NO, NO))).status_code == 409


@pytest.mark.promise("P5")
async def test_caller_who_saw_nothing_is_shown_a_changed_question_first(talk: Talk) -> None:
    action, _ = await by_another(talk)
    talk.client = talk.house.client(await talk.house.person("cem"))
    said = approvals(action, YES, YES)
    assert (await talk.resume(approvals=said)).status_code == 409
    assert (await talk.resume(approvals=said)).status_code == 200


async def test_caller_who_saw_nothing_can_answer_an_unchanged_question(talk: Talk) -> None:
    action = await talk.asked("confirm")
    talk.client = talk.house.client(await talk.house.person("ben"))
    assert (await talk.resume(approvals=approvals(action, YES, YES))).status_code == 200


@pytest.mark.promise("P5")
async def test_run_shows_the_current_revision(talk: Talk) -> None:
    action, _ = await by_another(talk)
    shown = await talk.run("hello?")
    assert (shown.status_code, shown.json()["pending_action"]["tool_calls"][0]["arguments"]) == (409, OTHER)
    assert (await talk.resume(approvals=approvals(action, YES, YES))).status_code == 200


@pytest.mark.promise("P5")
async def test_answer_with_a_revision_applies_to_that_revision(talk: Talk) -> None:
    await talk.house.services.policies.put(operator(), TWO)
    ben = talk.house.client(await talk.house.person("ben"))
    action = await talk.asked("confirm")
    [before] = await talk.items()
    changed = await edited(talk, ben)
    said = approvals(action, YES, YES)
    old = await talk.resume(approvals=said, revision=1, hash=before["hash"])
    assert (old.status_code, old.json()["code"], old.json()["revision"]) == (409, "stale_revision", 2)
    wrong = await talk.resume(approvals=said, revision=2, hash=before["hash"])
    assert (wrong.status_code, wrong.json()["code"]) == (409, "stale_revision")
    assert (await talk.resume(approvals=said, revision=2, hash=changed["hash"])).status_code == 200


@pytest.mark.parametrize("given", [{"revision": 1}, {"hash": "x"}])
async def test_a_revision_without_its_hash_is_refused(talk: Talk, given: dict[str, Any]) -> None:
    action = await talk.asked("confirm")
    refused = await talk.resume(approvals=approvals(action, YES, YES), **given)
    assert (refused.status_code, len(refused.json()["errors"])) == (422, 1)


@pytest.mark.promise("P5")
async def test_change_back_to_a_seen_question_is_shown_again(talk: Talk) -> None:
    action, _ = await by_another(talk)
    cem = talk.house.client(await talk.house.person("cem"))
    back = await edited(talk, cem, action["tool_calls"][0]["arguments"])
    assert back["revision"] == 3
    refused = await talk.resume(approvals=approvals(action, YES, YES))
    assert (refused.status_code, refused.json()["revision"]) == (409, 3)


@pytest.mark.promise("P5")
async def test_concurrent_change_and_answer_never_approve_an_unseen_change(talk: Talk) -> None:
    """Whichever comes first: nobody approves what they were not shown."""
    await talk.house.services.policies.put(operator(), TWO)
    ben = talk.house.client(await talk.house.person("ben"))
    action = await talk.asked("confirm")
    said = approvals(action, {**YES, "arguments": OTHER}, YES)
    mine, theirs = await asyncio.gather(
        talk.resume(approvals=approvals(action, YES, YES)),
        ben.post("/resume", json={"thread_id": talk.thread, "approvals": said}),
    )
    assert sorted((mine.status_code, theirs.status_code)) in ([202, 202], [202, 409])
    [item] = await talk.items()
    assert item["approvals"]["given"] == 1, "an edit dismisses what was said before it"
    assert await talk.done() == []
