"""Groups of people, which policies name as those who may decide: only an administrator puts someone into one."""

import pytest

from assent.identity.model.access import Role
from tests.api.house import House


async def test_groups_are_shown_and_changed(house: House) -> None:
    admin = await house.admin()
    made = (await admin.post("/api/users", json={"name": "ana", "groups": ["ops", "finance", "ops"]})).json()
    assert made["groups"] == ["finance", "ops"]
    assert (await admin.patch("/api/users/ana", json={"role": "viewer"})).json()["groups"] == ["finance", "ops"]
    assert (await admin.patch("/api/users/ana", json={"groups": []})).json()["groups"] == []
    events = (await admin.get("/api/audit/events", params={"kind": "user.groups_changed"})).json()["items"]
    assert [event["payload"] for event in events] == ['{"from":["finance","ops"],"to":[]}']


@pytest.mark.parametrize("groups", [["x/y"], [""], ["a\nb"], [f"g{number}" for number in range(101)], "ops", [1]])
async def test_invalid_group_names_are_422(house: House, groups: object) -> None:
    admin = await house.admin()
    assert (await admin.post("/api/users", json={"name": "ana", "groups": groups})).status_code == 422


async def test_nobody_puts_themselves_into_a_group(house: House) -> None:
    ana = house.client(await house.person("ana", Role.REVIEWER))
    assert (await ana.patch("/api/users/ana", json={"groups": ["finance"]})).status_code == 403
