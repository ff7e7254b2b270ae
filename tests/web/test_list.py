"""The list in a real browser: found, sorted, grouped and chosen. Each test has its own type of items, because the
server is shared."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.cli.command import Server
from tests.web.test_browser import ask, sign_in, stands

ROWS = "#rows tr[data-id]"


@pytest.fixture
def type() -> str:
    return f"t{uuid4().hex[:12]}"


@pytest.fixture
async def reader(server: Server, page: Page) -> Page:
    await sign_in(page, server)
    return page


@pytest.fixture
async def unscripted(server: Server, browser: Browser) -> AsyncIterator[Page]:
    async with await browser.new_context(java_script_enabled=False) as context:
        page = await context.new_page()
        await sign_in(page, server)
        yield page


def titles(page: Page) -> Any:
    return page.locator(f"{ROWS} .request a")


def as_reviewer(server: Server, method: str, path: str, **more: Any) -> None:
    key = {"x-api-key": server.said["reviewer key"].split()[0]}
    response = httpx.request(method, f"{server.url}{path}", headers=key, trust_env=False, timeout=30, **more)
    assert response.status_code < 300, response.text


def at(hours: int) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


async def test_search_reads_arguments_and_keeps_the_order_in_the_address(
    server: Server, unscripted: Page, type: str
) -> None:
    """Without scripts: text, menus and order are links and forms."""
    late, soon = at(9), at(2)
    ask(server, type=type, title="late", expires_at=late, actions=[{"name": "act", "args": {"order": "4711"}}])
    ask(server, type=type, title="soon", expires_at=soon, actions=[{"name": "act", "args": {"order": "4711"}}])
    ask(server, type=type, title="other", actions=[{"name": "act", "args": {"order": "12"}}])
    await unscripted.goto(f"{server.url}/inbox")
    await unscripted.get_by_role("combobox", name="Search").fill(f"4711 type:{type}")
    await unscripted.keyboard.press("Enter")
    await expect(titles(unscripted)).to_have_text(["soon", "late"])
    await unscripted.get_by_role("button", name="Sort").click()
    await unscripted.get_by_role("link", name="Oldest").click()
    await expect(titles(unscripted)).to_have_text(["late", "soon"])
    await unscripted.get_by_role("button", name="Sort: Oldest").click()
    await unscripted.get_by_role("link", name="Deadline").click()
    await expect(titles(unscripted)).to_have_text(["soon", "late"])
    assert "sort%3Adeadline" in unscripted.url
    await titles(unscripted).first.click()
    await expect(unscripted.locator("h2").first).to_contain_text("soon")


async def test_facets_have_counts_and_take_several_values(server: Server, reader: Page, type: str) -> None:
    ask(server, type=type, title="one")
    ask(server, type=type, title="two")
    ask(server, type=f"{type}b", title="three")
    await reader.goto(f"{server.url}/inbox?q=kind:{type},{type}b")
    await expect(titles(reader)).to_have_text(["three", "two", "one"])
    button = reader.get_by_role("button", name="Type: ")
    await button.click()
    menu = reader.locator("#facet-kind")
    await expect(menu.get_by_role("link", name=f"{type} 2", exact=True)).to_have_attribute("aria-current", "true")
    await menu.get_by_role("link", name=f"{type} 2", exact=True).click()
    await expect(titles(reader)).to_have_text(["three"])
    await reader.get_by_role("button", name="Type: ").click()
    await reader.locator("#facet-kind").get_by_role("link", name=f"{type} 2", exact=True).click()
    await expect(titles(reader)).to_have_text(["three", "two", "one"])


async def test_groups_have_headings_and_keys_skip_them(server: Server, reader: Page, type: str) -> None:
    for number in range(35):
        ask(server, type=f"{type}{'ab'[number % 2]}", title=f"item {number}")
    await reader.goto(f"{server.url}/inbox?q=kind:{type}a,{type}b group:type")
    await expect(reader.locator(".rows .group")).to_have_text([f"{type}b", f"{type}a"])
    await reader.locator(".pages").scroll_into_view_if_needed()
    await expect(reader.locator("tr[data-id]")).to_have_count(35)
    await expect(reader.locator(".rows .group")).to_have_text([f"{type}b", f"{type}a"])
    await reader.evaluate("document.querySelector('#list').scrollTop = 0")
    await reader.keyboard.press("j")
    await expect(titles(reader).first).to_be_focused()


async def test_all_shown_rows_and_ranges_are_chosen(server: Server, reader: Page, type: str) -> None:
    for number in range(6):
        ask(server, type=type, title=f"item {number}")
    await reader.goto(f"{server.url}/inbox?q=type:{type}")
    boxes = reader.locator("[name=chosen]")
    await boxes.nth(1).click()
    await boxes.nth(4).click(modifiers=["Shift"])
    await expect(reader.get_by_text("4 selected")).to_be_visible()
    await expect(boxes.nth(0)).not_to_be_checked()
    await reader.get_by_label("Select all shown").click()
    await expect(reader.get_by_text("6 selected")).to_be_visible()
    await reader.get_by_role("button", name="Clear").click()
    await expect(reader.locator("[name=chosen]:checked")).to_have_count(0)
    await expect(reader.get_by_label("Select all shown")).not_to_be_checked()


async def test_tab_is_marked_while_the_search_names_a_status(server: Server, reader: Page, type: str) -> None:
    ask(server, type=type, title="one")
    pending, resolved = (reader.locator("#tabs a", has_text=name) for name in ("Pending", "Resolved"))
    await reader.goto(f"{server.url}/inbox?q=is:pending type:{type}")
    await expect(pending).to_have_attribute("aria-current", "page")
    await expect(pending).to_have_text("Pending 1")
    await expect(resolved).to_have_text("Resolved")
    await resolved.click()
    await reader.wait_for_url("**tab=resolved")
    await expect(reader.get_by_role("combobox", name="Search")).to_have_value(f"type:{type}")
    await reader.goto(f"{server.url}/inbox?q=is:pending is:resolved type:{type}")
    await expect(reader.locator("#tabs [aria-current]")).to_have_count(0)


async def test_search_field_completes_the_last_word(server: Server, reader: Page, type: str) -> None:
    ask(server, type=type, title="one")
    await reader.goto(f"{server.url}/inbox")
    field = reader.get_by_role("combobox", name="Search")
    await field.fill("refund ris")
    offered = reader.locator("#filter-words option")
    assert "refund risk:" in await offered.evaluate_all("options => options.map((one) => one.value)")
    await field.fill("refund is:pend")
    await expect(offered).to_have_count(1)
    await expect(offered).to_have_attribute("value", "refund is:pending")


async def test_resolved_items_say_who_decided_what_and_offer_no_bulk(server: Server, reader: Page, type: str) -> None:
    item_id = ask(server, type=type, title="one", actions=[{"name": "act", "args": {"order": "4711"}}])
    item = stands(server, item_id)
    said = {"revision": item["revision"], "hash": item["hash"], "verb": "reject", "message": "no"}
    as_reviewer(server, "POST", f"/api/inbox/items/{item_id}/decision", json=said)
    await reader.goto(f"{server.url}/inbox?q=type:{type}&tab=resolved")
    row = reader.locator(ROWS)
    await expect(row.locator(".state")).to_have_text("Rejected")
    await expect(row.locator(".by")).to_have_text("you")
    await expect(row.locator(".summary")).to_have_text("order: 4711")
    await expect(reader.get_by_role("columnheader")).to_have_text(
        ["Request", "Outcome", "Agent", "Decided by", "Decided"]
    )
    await expect(reader.locator("#bulk, [name=chosen]")).to_have_count(0)


async def test_pending_row_names_its_owner_and_no_status(server: Server, reader: Page, type: str) -> None:
    item_id = ask(server, type=type, title="one")
    await reader.goto(f"{server.url}/inbox?q=type:{type}")
    row = reader.locator(ROWS)
    await expect(row).not_to_contain_text("Pending")
    await expect(row.locator(".owner")).to_have_count(0)
    as_reviewer(server, "PUT", f"/api/inbox/items/{item_id}/claim")
    await expect(row.locator(".owner")).to_have_text("Claimed: you")
    as_reviewer(server, "PUT", f"/api/inbox/items/{item_id}/owner", json={"owner": "me"})
    await expect(row.locator(".owner")).to_have_text("Owner: you")


async def test_header_stays_while_the_list_scrolls(server: Server, reader: Page, type: str) -> None:
    for number in range(30):
        ask(server, type=type, title=f"item {number}")
    for width in (1024, 1360):
        await reader.set_viewport_size({"width": width, "height": 700})
        await reader.goto(f"{server.url}/inbox?q=type:{type}")
        await expect(titles(reader)).to_have_count(30)
        await reader.evaluate("document.querySelector('#list').scrollTop = 500")
        header = reader.get_by_role("columnheader", name="Request", exact=True)
        await expect(header).to_be_in_viewport()
        box = await header.bounding_box()
        assert box is not None
        assert box["y"] <= 1
        assert box["width"] >= 300, "the request is the widest column, also at 1024 px"
        for column in ("Risk", "Agent", "Requested", "Deadline"):
            await expect(reader.get_by_role("columnheader", name=column)).to_be_visible()


async def test_tab_shows_the_number_and_the_live_region_tells_changes(server: Server, reader: Page, type: str) -> None:
    ask(server, type=type, title="one")
    await reader.goto(f"{server.url}/inbox?q=type:{type}")
    count = reader.locator("#inboxes > a .count").first
    before = int((await count.inner_text()).rstrip("+").replace(",", ""))
    assert (await reader.title()).startswith(f"({before}) ")
    ask(server, type=type, title="two")
    await expect(reader.locator("#live")).to_contain_text("items pending")
    after = await count.inner_text()
    await expect(reader).to_have_title(f"({after}) Inbox · Assent")
    icon = await reader.locator("link[rel=icon]").get_attribute("href")
    assert icon == f"/inbox/icon.svg?count={after}"
    drawn = await reader.request.get(f"{server.url}{icon}")
    assert drawn.headers["content-type"].startswith("image/svg+xml")
    assert f">{after if int(after) < 100 else '99+'}</text>" in await drawn.text()
    hostile = await reader.request.get(f"{server.url}/inbox/icon.svg?count=%3Cscript%3E")
    assert hostile.status == 422


async def test_palette_finds_items_by_their_text(server: Server, reader: Page, type: str) -> None:
    word = f"w{uuid4().hex}"
    item_id = ask(server, type=type, title="one", actions=[{"name": "act", "args": {"order": word}}])
    await reader.goto(f"{server.url}/inbox")
    await reader.keyboard.press("Control+k")
    await reader.locator("#palette input").fill(word)
    await reader.locator("#palette").get_by_role("button", name="one").click()
    await reader.wait_for_url(f"**/inbox/{item_id}")


async def test_times_read_the_same_before_and_after_the_script(server: Server, browser: Browser, type: str) -> None:
    ask(server, type=type, title="one", expires_at=at(3))
    said = []
    for scripted in (True, False):
        async with await browser.new_context(java_script_enabled=scripted) as context:
            page = await context.new_page()
            await sign_in(page, server)
            await page.goto(f"{server.url}/inbox?q=type:{type}")
            said.append(await page.locator(f"{ROWS} .due time").inner_text())
    assert said[0] == said[1] == "in 2 h"
