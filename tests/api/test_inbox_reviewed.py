"""Faults that a review of the inbox has found."""

from pathlib import Path

import pytest

from tests.api.house import Builder
from tests.api.reviewing import Office, email, open_office, problem, script


@pytest.fixture
async def office(build: Builder) -> Office:
    return await open_office(build)


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
async def test_time_out_of_range_is_refused(office: Office, moment: str) -> None:
    asked = {"type": "x", "title": "t", "expires_at": moment}
    problem(await office.agent.post("/api/inbox/items", json=asked), 422, "invalid_request")
    item = await office.request()
    snoozed = await office.ana.put(f"/api/inbox/items/{item['id']}/snooze", json={"until": moment})
    problem(snoozed, 422, "invalid_request")


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"$ref": "http://127.0.0.1/x"}])
async def test_a_schema_that_cannot_be_enforced_is_refused(office: Office, schema: dict[str, str]) -> None:
    asked = {"type": "x", "title": "t", "actions": [{"name": "a", "args": {}, "schema": schema}]}
    refused = problem(await office.agent.post("/api/inbox/items", json=asked), 422, "invalid_request")
    assert "actions[0].schema" in refused["detail"]


async def test_a_policy_that_is_nested_too_deep_is_refused(office: Office) -> None:
    admin = await office.house.admin()
    sent = await admin.post("/api/policies/test", json={"policy": "a=" + "[" * 5000})
    problem(sent, 422, "invalid_policy")


@pytest.mark.promise("P6")
async def test_editor_cannot_approve_under_separate_duties(office: Office, tmp_path: Path) -> None:
    """Under separate duties somebody else's edit, of another action, does not make one's own a stranger's."""
    await office.policy({"default": {"name": "default", "then": "ask", "separate_duties": True}})
    log = tmp_path / "sent"
    item = await office.asked("batched", script(email("x", log), email("y", log)))
    for key, client in (("0", office.ana), ("1", office.ben)):
        args = {"to": f"to {key}", "body": "z", "log": str(log)}
        rest = {"key": "1" if key == "0" else "0", "verb": "approve"}
        changed = [{"key": key, "verb": "edit", "args": args}, rest]
        item = await office.decided(item, client=client, actions=changed)
    assert (item["status"], item["revision"]) == ("PENDING", 3)
    for client in (office.ana, office.ben):
        problem(await office.decide(item, "approve", client), 403, "self_approval")
    assert not log.exists()
    cleo = office.house.client(await office.house.person("cleo"))
    await office.decided(item, "approve", client=cleo)
    await office.rests(item["source"]["thread_id"], status="idle")
    assert sorted(log.read_text().splitlines()) == ["to 0: z", "to 1: z"]


@pytest.mark.promise("P6")
async def test_editor_may_decide_again_once_the_agent_asks_again(office: Office) -> None:
    await office.policy({"default": {"name": "default", "then": "ask", "separate_duties": True}})
    item = await office.request()
    item = await office.decided(item, actions=[{"key": "0", "verb": "edit", "args": {"limit": 6}}])
    problem(await office.decide(item, "approve"), 403, "self_approval")
    assert (await office.ask_revision(item, client=office.ben)).status_code == 200
    again = await office.post(item, "resubmission", office.agent, payload={"limit": 7})
    assert again.status_code == 200, again.text
    assert (await office.decided(again.json(), "approve"))["status"] == "APPROVED"
