"""Requests by agents and services: made once, decided, sent back and resubmitted, expired, and called back about."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assent.identity.model.access import Kind
from tests.api.house import Builder
from tests.api.reviewing import Office, open_office, problem
from tests.receiver import Receiver, receiving, verified
from tests.waiting import until

BODY = {"type": "config_change", "title": "Raise the limit", "payload": {"limit": 5}}


@pytest.fixture
async def office(build: Builder) -> Office:
    return await open_office(build, outbound_allow=("127.0.0.1",))


@pytest.mark.promise("REVIEW-01")
async def test_request_becomes_a_pending_item(office: Office) -> None:
    thread = await office.thread()
    ends = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    item = await office.request(
        description="because *reasons*",
        recipient="finance",
        entity={"type": "agent_workspace_run", "id": "r1"},
        thread_ids=[thread],
        expires_at=ends.isoformat(),
    )
    seen = await office.get(item["id"])
    assert (seen["status"], seen["type"], seen["revision"], seen["gated"]) == ("PENDING", "config_change", 1, True)
    assert (seen["title"], seen["description"], seen["recipient"]) == (
        "Raise the limit",
        "because *reasons*",
        "finance",
    )
    assert seen["entity"] == {"type": "agent_workspace_run", "id": "r1"}
    assert (seen["links"], seen["source"]["thread_id"]) == ([thread], None)
    assert datetime.fromisoformat(seen["expires_at"]) == ends
    assert seen["actions"][0]["args"] == {"limit": 5}
    assert seen["actions"][0]["allowed"] == ["approve", "edit", "reject"]


async def test_a_request_names_its_actions(office: Office) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    actions = [
        {"name": "pay", "args": {"n": 1}, "schema": schema},
        {"key": "why", "name": "say", "args": "text", "allowed": ["respond", "ignore"]},
    ]
    item = await office.request(actions=actions)
    assert [(action["key"], action["allowed"]) for action in item["actions"]] == [
        ("0", ["approve", "edit", "reject"]),
        ("why", ["respond", "ignore"]),
    ]
    wrong = [{"key": "0", "verb": "edit", "args": {"n": "x"}}, {"key": "why", "verb": "ignore"}]
    refused = problem(await office.decide(item, actions=wrong), 422, "invalid_decision")
    assert refused["errors"][0]["path"].startswith("actions[0].args")
    right = [{"key": "0", "verb": "edit", "args": {"n": 2}}, {"key": "why", "verb": "respond", "message": "so"}]
    done = await office.decided(item, actions=right)
    assert (done["status"], done["resolution"], done["actions"][0]["args"]) == ("APPROVED", "partial", {"n": 2})


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": ""},
        {"type": "a b"},
        {"title": ""},
        {"title": None},
        {"expires_at": "2001-01-01T00:00:00Z"},
        {"expires_at": "2099-01-01T00:00:00"},
        {"thread_ids": ["nowhere"]},
        {"entity": {"type": "x"}},
        {"actions": [{"name": "a", "key": "k"}, {"name": "b", "key": "k"}]},
        {"actions": [{"name": "a", "allowed": ["accept"]}]},
        {"actions": [{"name": "a"}] * 101},
        {"dedupe_key": ""},
    ],
)
async def test_invalid_request_is_refused(office: Office, wrong: dict[str, Any]) -> None:
    problem(await office.agent.post("/api/inbox/items", json={**BODY, **wrong}), 422, "invalid_request")
    assert (await office.page())["counts"] == {"pending": 0, "resolved": 0}


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"$ref": "#/nowhere"}, "actions[0].schema.properties.a.items"),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "actions[0].schema.properties.a.items"),
        ({"$ref": "#/properties/a/type"}, "actions[0].schema.properties.a.items"),
        ({"pattern": "(?=a)b"}, "actions[0].schema.properties.a.items.pattern"),
        ({"pattern": "("}, "actions[0].schema"),
        ({"minimum": "x"}, "actions[0].schema"),
    ],
    ids=str,
)
async def test_unenforceable_schema_is_refused(office: Office, part: Any, path: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": part}}}
    actions = [{"name": "pay", "args": {}, "schema": schema}]
    body = {**BODY, "actions": actions}
    refused = problem(await office.agent.post("/api/inbox/items", json=body), 422, "invalid_request")
    assert [error["path"] for error in refused["errors"]] == [path]
    assert "properties.a.items" in refused["detail"]
    assert await office.items() == []
    item = await office.request()
    assert (await office.ask_revision(item)).status_code == 200
    problem(await office.post(item, "resubmission", office.agent, actions=actions), 422, "invalid_request")


async def test_callback_url_that_cannot_be_called_is_refused(office: Office) -> None:
    for target in ("http://10.0.0.1/hook", "ftp://example.com", "nonsense"):
        refused = await office.agent.post("/api/inbox/items", json={**BODY, "callback": target})
        assert refused.status_code == 422, refused.text


@pytest.mark.promise("P3")
async def test_the_same_dedupe_key_finds_the_same_item(office: Office) -> None:
    body = {**BODY, "dedupe_key": "d"}
    made = await asyncio.gather(*(office.agent.post("/api/inbox/items", json=body) for _ in range(6)))
    assert sorted(response.status_code for response in made) == [200] * 5 + [201]
    assert len({one.json()["id"] for one in made}) == 1
    other = await office.agent.post("/api/inbox/items", json={**body, "title": "Something else"})
    assert (other.status_code, other.json()["title"]) == (200, "Raise the limit")
    stranger = office.house.client(await office.house.key(Kind.SERVICE))
    assert (await stranger.post("/api/inbox/items", json=body)).status_code == 201, "a key of its own"
    assert (await office.page())["counts"]["pending"] == 2


@pytest.mark.promise("P3")
async def test_the_same_idempotency_key_makes_one_item(office: Office) -> None:
    key = {"Idempotency-Key": "k"}
    made = await asyncio.gather(*(office.agent.post("/api/inbox/items", json=BODY, headers=key) for _ in range(5)))
    assert {response.status_code for response in made} == {201}
    assert len({one.text for one in made}) == 1
    other = await office.agent.post("/api/inbox/items", json={**BODY, "title": "x"}, headers=key)
    problem(other, 422, "key_reused")
    await office.decided(made[0].json(), "approve")
    again = await office.agent.post("/api/inbox/items", json=BODY, headers=key)
    assert again.json()["status"] == "PENDING", "the answer that it was"


@pytest.mark.promise("REVIEW-41")
async def test_requester_is_called_back_once_with_a_signature(office: Office) -> None:
    async with receiving() as receiver:
        item = await office.request(callback=f"{receiver.url}/woken")
        await office.post(item, "comments", text="fine by me")
        stranger = office.house.client(await office.house.key())
        assert (await office.post(item, "comments", stranger, text="for the reviewers")).status_code == 201
        await office.decided(item, "approve", notes="go ahead")
        [call] = await receiver.has(1)
        told = call.json
        assert (call.path, told["event"], told["kind"], told["item_id"]) == ("/woken", "item", "decision", item["id"])
        assert (told["status"], told["actions"]) == ("APPROVED", [{"key": "0", "verb": "approve"}])
        assert (told["notes"], [comment["text"] for comment in told["comments"]]) == ("go ahead", ["fine by me"])
        admin = await office.house.admin()
        assert verified(call, (await admin.get("/api/webhooks/secret")).json()["secret"])
        await _delivered(office, item["id"])
    assert len(receiver.calls) == 1


async def test_undone_decision_is_never_sent_to_the_callback(office: Office) -> None:
    async with receiving() as receiver:
        item = await office.request(callback=receiver.url)
        await office.decided(item, "approve", grace_seconds=60)
        await office.ana.delete(f"/api/inbox/items/{item['id']}/decision")
        await office.decided(item, "reject")
        [call] = await receiver.has(1)
        assert call.json["actions"] == [{"key": "0", "verb": "reject"}]


async def _delivered(office: Office, item_id: str) -> None:
    async def delivered() -> bool:
        return bool((await office.get(item_id))["delivery"]["status"] == "delivered")

    await until(delivered)


# Sent back


@pytest.mark.promise("REVIEW-12")
@pytest.mark.promise("REVIEW-19")
@pytest.mark.promise("REVIEW-22")
@pytest.mark.promise("REVIEW-47")
async def test_a_request_is_sent_back_and_resubmitted(office: Office) -> None:
    async with receiving() as receiver:
        item = await office.request(callback=receiver.url)
        problem(await office.post(item, "resubmission", office.agent, title="x"), 409, "invalid_transition")
        assert "resubmit" not in (await office.get(item["id"], office.agent))["can"]
        await office.post(item, "comments", text="three at most")
        back = (await office.ask_revision(item, notes="lower")).json()
        assert (back["status"], back["revision"]) == ("REVISION_REQUESTED", 1)
        [call] = await receiver.has(1)
        told = call.json
        assert (told["kind"], told["status"], told["notes"]) == ("revision_request", "REVISION_REQUESTED", "lower")
        assert [comment["text"] for comment in call.json["comments"]] == ["three at most"]
    seen = await office.get(item["id"], office.agent)
    assert "resubmit" in seen["can"]
    stranger = office.house.client(await office.house.key())
    problem(await office.post(item, "resubmission", stranger, title="x"), 403, "not_allowed")
    again = (await office.post(item, "resubmission", office.agent, title="Lower", payload={"limit": 3})).json()
    assert (again["status"], again["revision"], again["title"]) == ("PENDING", 2, "Lower")
    assert again["actions"][0]["args"] == {"limit": 3}
    problem(await office.decide(item, "approve"), 409, "stale_revision")
    history = (await office.ana.get(f"/api/inbox/items/{item['id']}/revisions")).json()
    assert [state["title"] for state in history] == ["Raise the limit", "Lower"]
    assert [decision["notes"] for decision in again["decisions"]] == ["lower"], "the notes are kept"
    await office.decided(again, "approve")
    await office.verified()


@pytest.mark.promise("REVIEW-23")
@pytest.mark.parametrize(("verb", "status"), [("approve", "APPROVED"), ("reject", "REJECTED")])
async def test_request_that_was_sent_back_can_still_be_decided(office: Office, verb: str, status: str) -> None:
    item = await office.request()
    await office.ask_revision(item)
    done = await office.decided(item, verb)
    assert done["status"] == status
    assert [(decision["kind"], decision["standing"]) for decision in done["decisions"]] == [
        ("revision_request", False),
        ("decision", True),
    ]
    problem(await office.post(item, "resubmission", office.agent), 409, "invalid_transition")


async def test_while_sending_back_can_be_undone_nothing_else_is_decided(office: Office) -> None:
    item = await office.request()
    await office.ask_revision(item, grace_seconds=60)
    winner = problem(await office.decide(item, "approve", office.ben), 409, "already_decided")["decision"]
    assert winner["kind"] == "revision_request"
    office.house.pass_time(timedelta(seconds=61))
    await office.decided(item, "approve", client=office.ben)


async def test_two_approvals_count_on_a_request_that_was_sent_back(office: Office) -> None:
    await office.policy({"default": {"name": "two", "then": "ask", "approvals": 2}})
    item = await office.request()
    await office.decided(item, "approve")
    await office.ask_revision(item, client=office.ben)
    decided = await office.decided(item, "approve", client=office.ben)
    assert (decided["status"], decided["approvals"]["given"]) == ("APPROVED", 2)


async def test_resubmission_is_judged_by_its_new_arguments(office: Office) -> None:
    rules = [
        {"name": "no", "then": "never", "tool": "drop"},
        {"name": "two", "then": "ask", "tool": "pay", "approvals": 2},
    ]
    await office.policy({"rules": rules})
    item = await office.request(actions=[{"name": "read", "args": {}}])
    await office.ask_revision(item)
    again = (await office.post(item, "resubmission", office.agent, actions=[{"name": "pay", "args": {}}])).json()
    assert again["approvals"]["needed"] == 2
    await office.ask_revision(again)
    worst = (await office.post(item, "resubmission", office.agent, actions=[{"name": "drop", "args": {}}])).json()
    assert worst["actions"][0]["allowed"] == ["reject"]
    problem(await office.decide(worst, "approve"), 422, "invalid_decision")


# Ends


@pytest.mark.promise("REVIEW-52")
@pytest.mark.promise("P7")
@pytest.mark.promise("P8")
async def test_undecided_request_expires_by_the_databases_clock(office: Office) -> None:
    async with receiving() as receiver:
        ends = datetime.now(UTC) + timedelta(hours=1)
        item = await office.request(callback=receiver.url, expires_at=ends.isoformat())
        office.house.pass_time(timedelta(hours=2))
        late = problem(await office.decide(item, "approve"), 409, "invalid_transition")
        assert late["from"] == "EXPIRED", "even before anybody has looked at the clock"
        await office.request(title="a bell")
        await _told(receiver, "EXPIRED", "expired")
    seen = await office.get(item["id"])
    assert (seen["status"], seen["resolution"], seen["decided_by"]) == ("EXPIRED", "expired", None)
    assert seen["decisions"] == []
    problem(await office.decide(item, "approve"), 409, "invalid_transition")
    problem(await office.post(item, "cancellation"), 409, "invalid_transition")
    assert await office.kinds(item["id"]) == ["item.created", "item.expired"]
    await office.verified()


@pytest.mark.promise("REVIEW-41")
async def test_rejected_request_calls_back_with_status_and_notes(office: Office) -> None:
    async with receiving() as receiver:
        item = await office.request(callback=receiver.url)
        await office.decided(item, "reject", notes="too expensive")
        [call] = await receiver.has(1)
        assert (call.json["status"], call.json["notes"]) == ("REJECTED", "too expensive")


async def test_withdrawn_request_calls_back_with_the_reason(office: Office) -> None:
    async with receiving() as receiver:
        item = await office.request(callback=receiver.url)
        gone = (await office.post(item, "cancellation", office.agent, notes="not needed")).json()
        assert (gone["status"], gone["resolution"]) == ("CANCELLED", "withdrawn")
        await _told(receiver, "CANCELLED", "not needed")


async def _told(receiver: Receiver, status: str, reason: str) -> None:
    [call] = await receiver.has(1)
    assert (call.json["kind"], call.json["status"]) == ("withdrawal", status)
    assert reason in call.json["reason"]


@pytest.mark.promise("P7")
async def test_waiting_agent_is_informed_of_the_expiry(office: Office) -> None:
    asked = {"kind": "confirmation", "tool_calls": [{"call_id": "c", "tool_name": "pay", "arguments": {}}]}
    item = await office.asked("asking", {"questions": [asked]})
    assert item["expires_at"] is not None
    office.house.pass_time(timedelta(days=7, seconds=1))
    await office.request(title="a bell")
    await office.rests(item["source"]["thread_id"], status="idle")
    seen = await office.get(item["id"])
    assert seen["status"] == "EXPIRED"
    [told] = (await office.values(item["source"]["thread_id"]))["answers"]
    assert told["approvals"][0]["approved"] is False
    assert "expired" in told["approvals"][0]["feedback"]
