"""Faults that a review of the inbox has found."""

import pytest

from tests.api.house import Builder
from tests.api.reviewing import Office, open_office, problem


@pytest.fixture
async def office(build: Builder) -> Office:
    return await open_office(build)


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
async def test_a_time_that_cannot_be_reckoned_with_is_refused(office: Office, moment: str) -> None:
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
    sent = await office.ana.post("/api/policies/test", json={"policy": "a=" + "[" * 5000})
    problem(sent, 422, "invalid_policy")
