"""Policies in the browser: read as a table, tried on the past, put in force unless someone was faster, and revoked."""

import httpx
import pytest
from playwright.async_api import Page, expect

from assent.identity.model.access import Role
from tests.api.house import LOOPBACK
from tests.api.reviewing import seen
from tests.cli.command import Server
from tests.web.conftest import Desk, hidden

FROM_HERE = {"origin": LOOPBACK, "sec-fetch-site": "same-origin"}
PATH = "/inbox/policies"
POLICY = """default = "ask"

[[rules]]
name = "small <refunds>"
tool = "refund"
when = "args.amount < 10"
then = "allow"

[[rules]]
name = "finance"
tool = "refund"
then = "ask"
by = { roles = ["admin"], groups = ["finance"], people = ["eve"] }
approvals = 2
separate_duties = true
risk = "high"
deadline = "4h"
remind_after = "1h"
after_deadline = "escalate"
escalate_to = { groups = ["directors"] }
verbs = ["approve", "reject"]
"""


@pytest.fixture
async def boss(desk: Desk) -> httpx.AsyncClient:
    return await desk.house.signed_in("boss", Role.ADMIN)


async def version(client: httpx.AsyncClient) -> int:
    return int((await client.get("/api/policies")).json()["version"])


async def send(client: httpx.AsyncClient, below: str = "", **typed: str | int) -> httpx.Response:
    shown = (await client.get(PATH)).text
    return await client.post(f"{PATH}{below}", data=hidden(shown, PATH) | typed, headers=FROM_HERE)


async def put(client: httpx.AsyncClient, policy: str = POLICY) -> None:
    done = await send(client, policy=policy.replace("\n", "\r\n"))
    assert done.status_code == 303, done.text


async def test_the_rules_in_force_are_read_as_a_table(desk: Desk, boss: httpx.AsyncClient) -> None:
    await put(boss)
    page = (await desk.ana.get(PATH)).text
    for told in (
        "small &lt;refunds&gt;",
        "<code>args.amount &lt; 10</code>",
        "Runs freely",
        "Needs approval",
        "2 people",
        "role admin",
        "group finance",
        "eve",
        "not the person who started or edited it",
        "High",
        "reminder after 1h",
        "after 4h to group directors",
        "expires after 8h",
        '<span class="tag">approve</span>',
        "all other calls",
        "Version 1 is in force",
        "boss",
    ):
        assert told in page, told
    assert "<textarea" not in page, "who may not write sees no form"
    refused = await desk.ana.post(PATH, data={"policy": POLICY, "version": 1}, headers=FROM_HERE)
    assert (refused.status_code, await version(boss)) == (403, 1)


async def test_the_text_can_be_tested_before_it_is_put_in_force(desk: Desk, boss: httpx.AsyncClient) -> None:
    small = await desk.ask(actions=[{"name": "refund", "args": {"amount": 5}}])
    large = await desk.ask(actions=[{"name": "refund", "args": {"amount": 50}}])
    before = await version(boss)
    tested = await send(boss, "/test", policy=POLICY)
    assert tested.status_code == 200
    report = tested.text[
        tested.text.index('id="replay"') : tested.text.index('<form method="post" action="/inbox/policies"')
    ]
    assert "1 call would have been treated differently" in report
    assert f'href="/inbox/{small["id"]}"' in report
    assert large["id"] not in report
    assert "Runs freely" in report
    assert "approvals = 2" in tested.text
    assert await version(boss) == before, "trying out changes nothing"
    harmless = await send(boss, "/test", policy='default = "ask"')
    assert "Nothing would have been different" in harmless.text


@pytest.mark.parametrize("below", ["", "/test"])
async def test_what_is_wrong_is_named_by_rule_and_field_and_kept(boss: httpx.AsyncClient, below: str) -> None:
    wrong = POLICY.replace("approvals = 2", "approvals = 99").replace('risk = "high"', 'risk = "<b>"')
    answer = await send(boss, below, policy=wrong)
    assert answer.status_code == 422
    assert "<strong>Rule 2 “finance”</strong> · <code>approvals</code>" in answer.text
    assert "<code>risk</code>" in answer.text
    assert "approvals = 99" in answer.text
    assert "<b>" not in answer.text
    assert "not TOML" in (await send(boss, below, policy="default = ")).text


async def test_a_version_that_came_in_between_is_not_run_over(desk: Desk, boss: httpx.AsyncClient) -> None:
    form = hidden((await boss.get(PATH)).text, PATH)
    other = await desk.house.signed_in("other", Role.ADMIN)
    await put(other, 'default = "never"')
    mine = form | {"policy": POLICY}
    refused = await boss.post(PATH, data=mine, headers=FROM_HERE)
    assert refused.status_code == 409
    assert "in force while you were editing" in refused.text
    assert '<span class="line add">+default = &#34;never&#34;</span>' in refused.text
    assert "approvals = 2" in refused.text
    assert (await boss.get("/api/policies")).json()["policy"]["default"]["then"] == "never"
    again = await boss.post(PATH, data=hidden(refused.text, PATH) | {"policy": POLICY}, headers=FROM_HERE)
    assert again.status_code == 303, "now that they know"
    stale = await boss.put("/api/policies", json={"policy": 'default = "ask"', "after": 0})
    assert (stale.status_code, stale.json()["code"]) == (409, "conflict")


async def test_versions_tell_who_when_and_what(desk: Desk, boss: httpx.AsyncClient) -> None:
    await put(boss)
    await put(boss, POLICY.replace("approvals = 2", "approvals = 3"))
    page = (await desk.ana.get(PATH)).text
    assert '<span class="line cut">-approvals = 2</span>' in page
    assert '<span class="line add">+approvals = 3</span>' in page
    assert "first version" in page
    for number in range(22):
        await put(boss, POLICY.replace("4h", f"{number + 2}h"))
    first = (await desk.ana.get(PATH)).text
    older = first[first.index('rel="next" href="') :].split('"')[3]
    assert '<th scope="row">1</th>' in (await desk.ana.get(older.replace("&amp;", "&"))).text


async def test_standing_approvals_are_shown_and_revoked(desk: Desk, boss: httpx.AsyncClient) -> None:
    item = await desk.raised({"type": "tool_approval", "name": "send_email", "args": {"to": "a"}, "tool_call_id": "1"})
    asked = {**seen(item), "lifetime_seconds": 3600, "uses": 7}
    made = await boss.post("/api/standing-approvals", json=asked)
    assert made.status_code == 201, made.text
    [approval] = made.json()
    page = (await boss.get(PATH)).text
    action = f"{PATH}/standing/{approval['id']}/revocation"
    assert "exactly these arguments" in page
    assert f'action="{action}"' in page
    assert action not in (await desk.ana.get(PATH)).text
    assert (await desk.ana.post(action, headers=FROM_HERE)).status_code == 403
    assert (await boss.post(action, headers={"origin": "https://evil.example"})).status_code == 403
    done = await boss.post(action, headers=FROM_HERE)
    assert done.status_code == 303
    after = (await boss.get(done.headers["location"])).text
    assert "These calls need approval again" in after
    assert action not in after


async def test_item_offers_a_standing_approval_with_its_past_calls(desk: Desk, boss: httpx.AsyncClient) -> None:
    call = {"type": "tool_approval", "name": "refund", "args": {"amount": 40, "to": "kim"}, "tool_call_id": "1"}
    old, item = await desk.raised(call), await desk.raised(call | {"args": {"amount": 90, "to": "kim"}})
    path = f"/inbox/{item['id']}/standing"
    assert path not in await desk.open(item["id"])
    assert (await desk.ana.get(path)).status_code == 403
    assert path in (await boss.get(f"/inbox/{item['id']}")).text
    form = (await boss.get(path)).text
    typed = hidden(form, f"{path}/preview") | {"arguments": "some", "limit.amount": "at_most", "limit.to": "any"}
    wrong = await boss.post(f"{path}/preview", data=typed | {"value.amount": "much"}, headers=FROM_HERE)
    assert (wrong.status_code, "enter a number" in wrong.text) == (422, True)
    shown = (await boss.post(f"{path}/preview", data=typed | {"value.amount": "50"}, headers=FROM_HERE)).text
    assert "1 call would have run without a person" in shown
    assert f'href="/inbox/{old["id"]}"' in shown
    assert "Loosens the policy" in shown
    assert "args.amount &lt;= 50" in shown
    given = await boss.post(path, data=hidden(shown, path), headers=FROM_HERE)
    assert given.status_code == 303
    after = (await boss.get(given.headers["location"])).text
    assert "Calls like it run without a person" in after
    assert "args.amount &lt;= 50" in after
    assert (await boss.post(path, data=typed, headers={"origin": "https://evil.example"})).status_code == 403


async def test_loosening_is_shown_before_and_after_it_is_in_force(desk: Desk, boss: httpx.AsyncClient) -> None:
    await put(boss)
    looser = POLICY.replace("approvals = 2", "approvals = 1")
    tried = (await send(boss, "/test", policy=looser)).text
    assert "needs 1 approvals instead of 2" in tried
    await put(boss, looser)
    assert "needs 1 approvals instead of 2" in (await desk.ana.get(PATH)).text


async def test_the_page_is_quiet(server: Server, link: str, quiet_page: Page) -> None:
    await quiet_page.goto(link)
    await quiet_page.wait_for_url("**/inbox")
    await quiet_page.goto(f"{server.url}{PATH}")
    await expect(quiet_page.get_by_role("heading", name="Policies", exact=True)).to_be_visible()
    await quiet_page.get_by_role("button", name="Test against history").click()
    await expect(quiet_page.locator("[role=status]:not(#said)")).to_contain_text("needed approval")
    for width in (1280, 390, 320):
        await quiet_page.set_viewport_size({"width": width, "height": 800})
        assert await quiet_page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
