"""An item's page says who decides it, and how its run failed."""

import pytest

from assent.identity.model.access import Role, operator
from tests.web.conftest import Desk

CALL = {
    "action_requests": [{"name": "pay", "args": {"amount": 5}}],
    "review_configs": [{"action_name": "pay", "allowed_decisions": ["approve", "edit", "reject"]}],
}


async def test_a_page_without_the_right_has_no_buttons_and_names_who_has_it(desk: Desk) -> None:
    by = {"roles": ["admin"], "groups": ["<finance>"], "people": ["cleo"]}
    rules = [{"name": "large sums", "tool": "pay", "then": "ask", "by": by}]
    await desk.house.services.policies.put(operator("default"), {"rules": rules})
    item = await desk.raised(CALL)
    page = await desk.open(item["id"])
    assert "You cannot decide this." in page
    assert "Rule large sums requires: role admin, group &lt;finance&gt;, cleo." in page
    assert 'name="verb"' not in page
    assert "Request revision" not in page
    boss = await desk.house.signed_in("boss", role=Role.ADMIN)
    offered = (await boss.get(f"/inbox/{item['id']}")).text
    assert 'name="verb" value="approve"' in offered, "the control"
    assert "You cannot decide this." not in offered


async def test_a_page_says_why_the_policy_failed(desk: Desk) -> None:
    rules = [{"name": "small", "tool": "pay", "then": "allow", "when": "args.limit < 5"}]
    await desk.house.services.policies.put(operator("default"), {"rules": rules})
    page = await desk.open((await desk.raised(CALL))["id"])
    assert "The policy check failed, so a person must decide" in page
    assert "rules[0].when" in page


@pytest.mark.usefixtures("at_once")
async def test_a_page_shows_how_the_run_failed_that_took_the_answer(desk: Desk) -> None:
    item = await desk.raised("Which one?")
    assert (await desk.decide(item["id"], "respond", **{"a0.message": "this"})).status_code == 303
    await desk.answer(item)
    await desk.change('UPDATE runs SET status = \'error\', error = \'{"error": "ValueError", "message": "<b>no</b>"}\'')
    page = await desk.open(item["id"])
    assert "ValueError" in page
    assert "&lt;b&gt;no&lt;/b&gt;" in page
