"""The timeline in the browser: found by what a person knows, verified, exported; and only for those who may."""

import re

import httpx
import pytest
from playwright.async_api import Page, expect

from assent.identity.model.access import Role
from tests.api.house import LOOPBACK
from tests.cli.command import Server
from tests.web.conftest import Desk

FROM_HERE = {"origin": LOOPBACK, "sec-fetch-site": "same-origin"}
PATH = "/inbox/audit"


@pytest.fixture
async def auditor(desk: Desk) -> httpx.AsyncClient:
    return await desk.house.signed_in("eve", Role.ADMIN)


async def kinds(client: httpx.AsyncClient, **search: str) -> list[str]:
    page = await client.get(PATH, params=search)
    assert page.status_code == 200, page.text
    body = page.text[page.text.index("<main") :]
    return re.findall(r'data-label="Event type"[^>]*><a href="[^"]*"><code>([^<]*)</code>', body)


async def test_what_happened_is_found_by_kind_who_about_when_and_text(desk: Desk, auditor: httpx.AsyncClient) -> None:
    item = await desk.ask(title="Refund <order> 598")
    await desk.decide(item["id"], "approve")
    assert await kinds(auditor, kind="item.approved") == ["item.approved"]
    assert set(await kinds(auditor, kind="item")) == {"item.created", "item.approved"}
    assert await kinds(auditor, kind="ite") == []
    assert await kinds(auditor, actor="ana", kind="item") == ["item.approved"]
    assert len(await kinds(auditor, subject=item["id"])) == 2, "an item's id will do"
    assert await kinds(auditor, subject=f"item:{item['id']}") == await kinds(auditor, subject=item["id"])
    assert await kinds(auditor, text="<ORDER> 598") == ["item.created"]
    assert await kinds(auditor, text="%") == []
    assert "item.created" in await kinds(auditor, since="2020-01-01", until="2999-01-01")
    assert await kinds(auditor, until="2020-01-01") == []
    page = (await auditor.get(PATH)).text
    assert "<order>" not in page
    assert f'href="/inbox/{item["id"]}"' in page
    wrong = await auditor.get(PATH, params={"since": "yesterday", "text": "keep me"})
    assert wrong.status_code == 422
    assert "is not a date" in wrong.text
    assert 'value="keep me"' in wrong.text


async def test_pages_follow_one_another_and_keep_the_search(desk: Desk, auditor: httpx.AsyncClient) -> None:
    for number in range(60):
        await desk.ask(title=f"Refund {number}")
    seen, address = [], f"{PATH}?kind=item.created"
    while address:
        page = (await auditor.get(address)).text
        seen += re.findall(r'<td class="number"[^>]*>(\d+)<', page)
        found = re.search(r'rel="next" href="([^"]*)"', page)
        address = found[1].replace("&amp;", "&") if found else ""
    assert len(seen) == len(set(seen)) == 60
    assert seen == sorted(seen, key=int, reverse=True)


async def test_the_chain_is_verified_and_a_change_is_seen(desk: Desk, auditor: httpx.AsyncClient) -> None:
    item = await desk.ask()
    whole = await auditor.post(f"{PATH}/verification", headers=FROM_HERE)
    told = (await auditor.get("/api/audit/verification")).json()
    assert "The chain is intact" in whole.text
    assert told["hash"] in whole.text
    assert f"<dd>{told['seq']}</dd>" in whole.text
    await desk.change(f"UPDATE events SET kind = 'item.approved' WHERE subject = 'item:{item['id']}'")
    broken = (await auditor.post(f"{PATH}/verification", headers=FROM_HERE)).text
    assert "The chain is broken at 1 place" in broken
    assert "was changed after it was written" in broken
    elsewhere = await auditor.post(f"{PATH}/verification", headers={"origin": "https://evil.example"})
    assert elsewhere.status_code == 403


async def test_it_can_be_exported_from_the_page(desk: Desk, auditor: httpx.AsyncClient) -> None:
    page = (await auditor.get(PATH)).text
    assert '<a class="button" href="/api/audit/export" download=' in page
    export = await auditor.get("/api/audit/export")
    assert export.headers["content-type"].startswith("application/x-ndjson")
    assert '"head"' in export.text.splitlines()[-1]


async def test_who_may_not_is_told_what_it_takes(desk: Desk) -> None:
    for answer in (await desk.ana.get(PATH), await desk.ana.post(f"{PATH}/verification", headers=FROM_HERE)):
        assert answer.status_code == 403
        assert "You need the scope audit:read" in answer.text
        assert 'aria-label="Navigation"' in answer.text, "with everything around it"


async def test_the_page_is_quiet(server: Server, link: str, quiet_page: Page) -> None:
    await quiet_page.goto(link)
    await quiet_page.wait_for_url("**/inbox")
    await quiet_page.goto(f"{server.url}{PATH}")
    await expect(quiet_page.get_by_role("heading", name="Audit", exact=True)).to_be_visible()
    await quiet_page.get_by_role("button", name="Verify the chain").click()
    await expect(quiet_page.locator("[role=status]:not(#said)")).to_contain_text("The chain is intact")
    for width in (1280, 390, 320):
        await quiet_page.set_viewport_size({"width": width, "height": 800})
        assert await quiet_page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
