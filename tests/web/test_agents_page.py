"""The agents page: where reviews go and why not, approval settings over the policy, open items."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from assent.identity.agents import AgentChange
from assent.identity.model.access import Kind, Role, operator
from assent.identity.model.agents import RegisteredAgent
from tests.web.conftest import DECIDED, Desk, hidden

PATH = "/inbox/agents"
REVIEW = {"kind": "workspace_review", "body": "I *tidied* the notes.", "target_path": "/notes"}


def plain(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


async def read(browser: httpx.AsyncClient, path: str = PATH, status: int = 200) -> str:
    page = await browser.get(path)
    assert page.status_code == status, page.text
    return page.text


async def registered(desk: Desk, name: str, **fields: Any) -> RegisteredAgent:
    return await desk.house.services.agents.create(operator(), name, AgentChange(**fields))


@pytest.fixture
async def admin(desk: Desk) -> httpx.AsyncClient:
    return await desk.house.signed_in("zoe", Role.ADMIN)


async def test_agents_are_listed_with_the_recipient_of_their_reviews(desk: Desk) -> None:
    await registered(desk, "lead", human="ana")
    await registered(desk, "<b>writer", parent="lead")
    await registered(desk, "lost")
    words = plain(await read(desk.ana))
    assert re.search(r"&lt;b&gt;writer lead – User ana", words)
    assert "lost – – User Unrouted" in words
    assert "Register an agent" not in words, "reviewers read"


async def test_administrator_registers_changes_and_removes(desk: Desk, admin: httpx.AsyncClient) -> None:
    refused = await admin.post(PATH, data={"name": "writer", "human": "nobody", "source": "user"})
    assert refused.status_code == 422
    assert "nobody" in refused.text
    made = await admin.post(PATH, data={"name": "writer", "human": "ana", "source": "user"})
    assert made.status_code == 303, made.text
    page = await read(admin, made.headers["location"])
    assert "Its reviews go to: ana" in plain(page)
    agent = await desk.house.services.agents.get(operator(), "writer")
    changed = await admin.post(f"{PATH}/{agent.id}", data={"parent": "", "human": "", "source": "system"})
    assert "Operators" in plain(await read(admin, changed.headers["location"]))
    assert (await desk.ana.post(f"{PATH}/{agent.id}", data={"source": "user"})).status_code == 403
    assert (await desk.ana.post(f"{PATH}/{agent.id}/removal")).status_code == 403
    removed = await admin.post(f"{PATH}/{agent.id}/removal")
    assert "Removed." in plain(await read(admin, removed.headers["location"]))
    await read(admin, f"{PATH}/{agent.id}", 404)


async def test_approval_settings_are_the_rules_that_apply(desk: Desk, admin: httpx.AsyncClient) -> None:
    policies = desk.house.services.policies
    others = {"name": "others", "agent": "other*", "then": "never"}
    rules = [others, {"name": "all mail", "tool": "mail", "then": "ask"}]
    await policies.put(operator(), {"rules": rules, "default": "ask"})
    agent = await registered(desk, "writer")
    path = f"{PATH}/{agent.id}"
    page = await read(admin, path)
    words = plain(page)
    assert "all mail" in words
    assert "others" not in words
    put = await admin.post(f"{path}/rules", data={**hidden(page, f"{path}/rules"), "tool": "search", "then": "allow"})
    assert put.status_code == 303, put.text
    first = (await policies.in_force(operator())).parsed().rules[0]
    assert (first.agent, first.tool, first.then) == ("writer", "search", "allow")
    stale = await admin.post(f"{path}/rules", data={**hidden(page, f"{path}/rules"), "tool": "x", "then": "allow"})
    assert stale.status_code == 409, "another version is in force by now"
    page = await read(admin, path)
    assert "this agent" in plain(page)
    sent = hidden(page, f"{path}/rules/removal")
    assert (await admin.post(f"{path}/rules/removal", data=sent)).status_code == 303
    left = (await policies.in_force(operator())).parsed().rules
    assert [rule.name for rule in left] == ["others", "all mail"]
    foreign = {"version": str((await policies.in_force(operator())).number), "number": "2"}
    assert (await admin.post(f"{path}/rules/removal", data=foreign)).status_code == 404, "a rule for all agents"
    assert (await desk.ana.post(f"{path}/rules", data={"then": "allow", "tool": "*"})).status_code == 403


@pytest.mark.promise("REVIEW-34")
async def test_unrouted_review_shows_what_to_check(desk: Desk) -> None:
    key = await desk.house.services.keys.create(operator(), kind=Kind.AGENT, name="writer")
    agents = desk.house.services.agents
    await registered(desk, "lead")
    await agents.change(operator(), "writer", AgentChange(parent="lead"))
    await agents.remove(operator(), "lead")
    writer = desk.house.client(key.secret)
    made = await writer.post("/api/workspace-reviews", json={"run_id": "r", "body": "Look", "target_path": "/notes"})
    page = plain(await read(desk.ana, f"/inbox/{made.json()['id']}"))
    assert "Workspace review (unrouted): writer: /notes" in page
    assert "Unrouted. The parent chain ends without a person. Pair the last agent with one," in page
    await agents.change(operator(), "writer", AgentChange(human="ana"))
    routed = await writer.post("/api/workspace-reviews", json={"run_id": "s", "body": "Look"})
    assert "Unrouted" not in plain(await read(desk.ana, f"/inbox/{routed.json()['id']}")), "the control"
    agent = await agents.get(operator(), "writer")
    listed = plain(await read(desk.ana, f"{PATH}/{agent.id}"))
    assert "Workspace review: writer: Look" in listed
    assert "Workspace review (unrouted): writer: /notes" in listed


async def test_agent_page_names_the_defect_of_its_chain(desk: Desk) -> None:
    agent = await registered(desk, "lost")
    assert "ends without a person" in plain(await read(desk.ana, f"{PATH}/{agent.id}"))


async def test_review_of_a_waiting_run_is_read_and_approved_on_its_page(desk: Desk) -> None:
    changes = [{"path": f"{number}.md", "summary": f"change {number}"} for number in range(5)]
    item = await desk.raised({**REVIEW, "proposed_changes": changes})
    page = await read(desk.ana, f"/inbox/{item['id']}")
    assert "I <em>tidied</em> the notes." in page
    words = plain(page)
    assert "/notes" in words
    assert "change 2" in words
    assert "+2 more" in words
    sent = hidden(page, f"/inbox/{item['id']}/decision")
    decided = await desk.ana.post(f"/inbox/{item['id']}/decision", data={**sent, "verb": "approve"})
    assert decided.status_code == 303, decided.text
    desk.house.pass_time(DECIDED)
    assert await desk.answer(item) == {"decision": "approved", "responseMarkdown": None}
