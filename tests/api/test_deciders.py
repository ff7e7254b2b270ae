"""The deciders, the state and the refused transitions that an item shows are correct."""

from typing import Any

import pytest

from tests.api.house import Builder
from tests.api.reviewing import Office, email, open_office, problem, script, seen

BY = {"name": "finance only", "tool": "send_email", "then": "ask"}
DECIDING = {"decide", "request_revision", "cancel", "settle_doubt"}


@pytest.fixture
async def office(build_on_both: Builder) -> Office:
    return await open_office(build_on_both)


async def test_reviewer_not_named_by_the_rule_cannot_decide_and_sees_who_can(office: Office) -> None:
    by = {"roles": ["admin"], "people": ["cleo"], "groups": ["finance"]}
    await office.policy({"rules": [{**BY, "by": by}]})
    item = await office.asked("batched", script(email()))
    admin = await office.house.admin()
    assert DECIDING.isdisjoint(item["can"])
    assert "finance only" in item["refusal"]
    assert item["deciders"] == [{"rule": "finance only", **by}]
    problem(await office.decide(item, "approve"), 403, "not_allowed")
    problem(await office.ask_revision(item), 403, "not_allowed")
    seen = await office.get(item["id"], admin)
    assert {"decide", "request_revision", "cancel"} <= set(seen["can"])
    assert (seen["refusal"], seen["deciders"]) == (None, item["deciders"])
    assert (await office.decide(item, "approve", admin)).status_code == 200, "the control"


async def test_with_separate_duties_the_starter_of_the_run_cannot_decide(office: Office) -> None:
    await office.policy({"rules": [{**BY, "separate_duties": True}]})
    item = await office.asked("batched", script(email()), client=office.ana)
    assert DECIDING.isdisjoint(set(item["can"]) - {"cancel"})
    assert "another person than the one who started the run" in item["refusal"]
    problem(await office.decide(item, "approve"), 403, "self_approval")
    assert "decide" in (await office.get(item["id"], office.ben))["can"]


async def test_an_agent_is_told_that_it_may_answer_a_clarification_and_decide_nothing_else(office: Office) -> None:
    asked = {"kind": "clarification", "clarifications": [{"call_id": "c", "question": "Which?", "context": ""}]}
    free = await office.asked("asking", {"questions": [asked]})
    assert "decide" in (await office.get(free["id"], office.agent))["can"]
    gated = await office.asked("asking", {"questions": [{"question": "Ship it?"}]})
    seen = await office.get(gated["id"], office.agent)
    assert "decide" not in seen["can"]
    assert "may not decide" in seen["refusal"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"by": {"roles": ["admin"]}}, "has named deciders"),
        ({"approvals": 2}, "asks 2 people"),
        ({"separate_duties": True}, "separates duties"),
        ({"verbs": ["reject"]}, "offers no approval"),
        ({"then": "never"}, "forbids the call"),
        ({"confirm": "passkey"}, "asks for a passkey each time"),
        ({}, None),
    ],
)
async def test_a_standing_approval_that_would_never_apply_is_refused(
    build: Builder, more: dict[str, Any], why: str | None
) -> None:
    office = await open_office(build)
    admin = await office.house.admin()
    item = await office.asked("batched", script(email()))
    await office.policy({"rules": [{**BY, **more}]})
    now = await office.asked("batched", script(email("again")))
    for asked in (item, now):
        given = await admin.post("/api/standing-approvals", json={**seen(asked), "lifetime_seconds": 60})
        if why is None:
            assert given.status_code == 201, given.text
        else:
            told = problem(given, 409, "conflict")
            assert (told["rule"], told["detail"]) == (
                "finance only",
                f"the rule 'finance only' {why}, so a standing approval is not possible",
            )
    assert len((await admin.get("/api/standing-approvals")).json()["items"]) == (2 if why is None else 0)


async def test_list_shows_the_edited_question(office: Office) -> None:
    await office.policy({"rules": [{**BY, "approvals": 2}]})
    item = await office.asked("batched", script(email("first words")))
    assert "first words" in (await office.items())[0]["summary"]
    args = {**item["actions"][0]["args"], "body": "other words"}
    await office.decided(item, actions=[{"key": "0", "verb": "edit", "args": args}])
    [row] = await office.items()
    assert "other words" in row["summary"]
    assert "first words" not in row["summary"]


async def test_execution_of_a_call_without_a_gate_is_not_left_as_granted(office: Office) -> None:
    """The server gets no report of the call once its answer has reached the graph."""
    item = await office.asked("batched", script(email()))
    decided = await office.decided(item, "approve", grace_seconds=60)
    assert decided["execution"] == "granted", "while it is on its way"
    assert (await office.ana.delete(f"/api/inbox/items/{item['id']}/decision")).status_code == 200
    await office.decided(item, "approve")
    await office.rests(item["source"]["thread_id"], status="idle")
    assert (await office.get(item["id"]))["execution"] is None


@pytest.mark.parametrize(("verb", "to"), [("reject", "REJECTED"), ("approve", "APPROVED")])
async def test_cancelled_item_shows_that_it_cannot_be_decided(office: Office, verb: str, to: str) -> None:
    item = await office.request()
    assert (await office.post(item, "cancellation")).status_code == 200
    told = problem(await office.decide(item, verb), 409, "invalid_transition")
    assert (told["from"], told["to"]) == ("CANCELLED", to)
    assert f"cannot become {to}" in told["detail"]
    told = problem(await office.ask_revision(item), 409, "invalid_transition")
    assert told["to"] == "REVISION_REQUESTED"
