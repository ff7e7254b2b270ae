"""A reviewer's day in a real browser: each workflow as it is lived, in both languages, by keyboard, on a phone."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, BrowserContext, Page, Route, expect

from tests.cli.command import Server
from tests.web.test_browser import ask, sign_in, stands

REFUND = {"name": "refund", "args": {"order": 598, "amount": 598.0, "note": "paid twice"}}
CONFIG = {
    "type": "config_change",
    "title": "Raise the limit of exports",
    "payload": {"file": "limits.toml", "changes": [{"field": "per_minute", "from": 600, "to": 1200}]},
}


def agent(server: Server) -> dict[str, str]:
    return {"x-api-key": server.said["agent key"].split()[0]}


def call(server: Server, method: str, path: str, **sent: Any) -> Any:
    answer = httpx.request(method, f"{server.url}{path}", headers=agent(server), trust_env=False, **sent)
    assert answer.status_code < 300, answer.text
    return answer.json()


@asynccontextmanager
async def someone(browser: Browser, server: Server, **context: Any) -> AsyncIterator[Page]:
    async with await browser.new_context(**context) as theirs:
        page = await theirs.new_page()
        await sign_in(page, server)
        yield page


@pytest.fixture
async def reader(quiet_page: Page, server: Server) -> Page:
    await sign_in(quiet_page, server)
    return quiet_page


async def ready(page: Page) -> None:
    """The item is shown, and its bar takes decisions."""
    await expect(page.locator("#detail:not([inert]) #bar:not([inert])")).to_be_visible()


async def open_item(page: Page, server: Server, item_id: str, query: str = "") -> None:
    await page.goto(f"{server.url}/inbox/{item_id}{query}")


@pytest.mark.promise("REVIEW-25")
async def test_a_config_change_is_read_as_a_diff_and_approved(server: Server, reader: Page) -> None:
    item_id = ask(server, **CONFIG)
    await open_item(reader, server, item_id)
    await expect(reader.locator("#detail del").first).to_contain_text("600")
    await expect(reader.locator("#detail ins").first).to_contain_text("1200")
    await reader.get_by_role("button", name="Approve", exact=True).click()
    await expect(reader.get_by_role("status")).to_contain_text("Approved: Raise the limit of exports")
    assert stands(server, item_id)["status"] == "APPROVED"


@pytest.mark.promise("REVIEW-25")
async def test_the_answer_to_a_decision_is_shown_however_late_it_comes(server: Server, reader: Page) -> None:
    item_id = ask(server, title="Answered late", actions=[REFUND])
    await open_item(reader, server, item_id)
    news = asyncio.Event()

    async def hold_back(route: Route) -> None:
        answer = await route.fetch()
        await news.wait()
        await route.fulfill(response=answer)

    await reader.route("**/decision", hold_back)
    await reader.get_by_role("button", name="Approve", exact=True).click()
    row = reader.get_by_role("row").filter(has_text="Answered late")
    await expect(row).to_contain_text("Approved")
    ask(server, title="Asked meanwhile", actions=[REFUND])
    await expect(reader.get_by_role("button", name="1 new")).to_be_visible()
    news.set()
    await expect(reader.get_by_role("status")).to_contain_text("Approved: Answered late")


@pytest.mark.promise("REVIEW-47", "REVIEW-18", "REVIEW-19", "REVIEW-49")
async def test_a_revision_is_asked_for_and_comes_back_as_revision_two(server: Server, reader: Page) -> None:
    item_id = ask(server, title="Send back", actions=[REFUND])
    await open_item(reader, server, item_id)
    await reader.get_by_role("button", name="Revise…").click()
    dialog = reader.get_by_role("dialog", name="Request revision")
    await dialog.get_by_role("button", name="Request revision").click()
    await expect(dialog).to_be_visible()
    assert stands(server, item_id)["status"] == "PENDING", "notes are needed"
    await dialog.get_by_role("textbox").fill("Half of it, please")
    await dialog.get_by_role("button", name="Request revision").click()
    await expect(reader.get_by_role("status")).to_contain_text("Revision requested: Send back")
    await open_item(reader, server, item_id)
    await expect(reader.get_by_text("Half of it, please").first).to_be_visible()
    changed = {**REFUND, "args": {**REFUND["args"], "amount": 299.0}}  # type: ignore[dict-item]
    call(server, "POST", f"/api/inbox/items/{item_id}/resubmission", json={"actions": [changed]})
    await expect(reader.get_by_role("link", name="revision 2")).to_be_visible()
    await expect(reader.locator(".requested")).to_contain_text("299.0")
    await expect(reader.locator(".requested")).to_contain_text("Half of it, please")
    now = stands(server, item_id)
    assert (now["status"], now["revision"]) == ("PENDING", 2)


@pytest.mark.promise("REVIEW-48", "REVIEW-15")
async def test_a_resolved_one_is_audited(server: Server, reader: Page) -> None:
    thread = call(server, "POST", "/threads", json={})["thread_id"]
    item_id = ask(server, title="Look back", actions=[REFUND], thread_ids=[thread])
    await open_item(reader, server, item_id)
    await reader.get_by_role("textbox", name="Comment").fill("Looks right to me")
    await reader.get_by_role("button", name="Comment", exact=True).click()
    await expect(reader.locator("#activity")).to_contain_text("Looks right to me")
    await reader.get_by_role("button", name="Approve", exact=True).click()
    await expect(reader.get_by_role("status")).to_contain_text("Approved: Look back")
    await reader.goto(f"{server.url}/inbox?tab=resolved&q=Look")
    await reader.get_by_role("link", name="Look back").click()
    detail = reader.locator("#detail")
    await expect(detail).to_contain_text("Looks right to me")
    await expect(detail.locator(".timeline")).to_contain_text("approved")
    await expect(detail.locator(f"aside a[href$='{thread}']")).to_be_visible()
    await expect(detail.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    await expect(detail.get_by_role("button", name="Reject…")).to_have_count(0)


@pytest.mark.promise("INBOX-12", "INBOX-17", "INBOX-18")
async def test_an_edit_shows_old_and_new_and_is_kept_as_a_draft(server: Server, reader: Page) -> None:
    item_id = ask(server, title="Refund with care", actions=[REFUND])
    await open_item(reader, server, item_id)
    await expect(reader.get_by_role("heading", name="Refund with care")).to_be_visible()
    await reader.keyboard.press("e")
    await reader.get_by_role("textbox", name="note").fill("paid \u200bonce")
    await expect(reader.locator(".field .was del")).to_have_text("paid twice")
    async with reader.expect_response(lambda one: one.url.endswith("/claim")):
        await reader.get_by_role("textbox", name="amount").fill("299.5")
    await expect(reader.get_by_role("button", name="Approve with 2 changes")).to_be_visible()
    await reader.reload()
    await expect(reader.get_by_text("Your draft is restored below.")).to_be_visible()
    await expect(reader.get_by_role("textbox", name="amount")).to_have_value("299.5")
    await reader.get_by_role("button", name="Approve with 2 changes").click()
    await expect(reader.get_by_role("status")).to_contain_text("Approved with 2 changes")
    assert stands(server, item_id)["actions"][0]["args"] == {"order": 598, "amount": 299.5, "note": "paid \u200bonce"}


async def test_of_two_actions_one_goes_each_way(server: Server, reader: Page) -> None:
    item_id = ask(server, title="Two at once", actions=[REFUND, {"name": "close_account", "args": {"id": 7}}])
    await open_item(reader, server, item_id)
    await reader.get_by_role("group", name="Decision for refund").get_by_label("Approve").check()
    await reader.get_by_role("group", name="Decision for close_account").get_by_label("Reject").check()
    await reader.get_by_role("button", name="Confirm").click()
    await expect(reader.get_by_role("status")).to_contain_text("Approved in part")
    said = [one["verb"] for one in stands(server, item_id)["decisions"][0]["actions"]]
    assert said == ["approve", "reject"]


async def test_of_two_browsers_one_wins_and_the_other_keeps_its_edit(server: Server, browser: Browser) -> None:
    item_id = ask(server, title="Race", actions=[REFUND])
    async with someone(browser, server) as ana, someone(browser, server) as ben:
        for page in (ana, ben):
            await open_item(page, server, item_id)
        await ben.keyboard.press("e")
        await ben.get_by_role("textbox", name="note").fill("what Ben wrote")
        await ana.get_by_role("button", name="Approve", exact=True).click()
        await expect(ana.get_by_role("status")).to_contain_text("Approved: Race")
        await expect(ben.get_by_text("This item changed after you opened it.")).to_be_visible()
        await ben.get_by_role("button", name="Approve with 1 change").click()
        await expect(ben.get_by_role("alert")).to_contain_text("already approved this")
        await expect(ben.get_by_role("alert")).to_contain_text("what Ben wrote")
    assert len(stands(server, item_id)["decisions"]) == 1


async def test_what_is_new_waits_behind_a_pill_and_nothing_moves(server: Server, reader: Page) -> None:
    first = ask(server, title="Here first", type="live_test")
    await reader.goto(f"{server.url}/inbox?q=type:live_test")
    row = reader.locator(f"tr[data-id='{first}']")
    before = await row.bounding_box()
    ask(server, title="Came later", type="live_test")
    pill = reader.get_by_role("button", name="1 new")
    await expect(pill).to_be_visible()
    assert await reader.get_by_role("link", name="Came later").count() == 0
    await pill.click()
    await expect(reader.get_by_role("link", name="Came later")).to_be_visible()
    assert before is not None


async def test_a_row_that_someone_decides_says_so_in_its_place(server: Server, browser: Browser, reader: Page) -> None:
    first, second = (ask(server, title=f"Row {n}", type="row_test") for n in (1, 2))
    await reader.goto(f"{server.url}/inbox?q=type:row_test")
    async with someone(browser, server) as other:
        await open_item(other, server, first)
        await other.get_by_role("button", name="Approve", exact=True).click()
        await expect(other.get_by_role("status")).to_contain_text("Approved")
    await expect(reader.locator(f"tr[data-id='{first}']")).to_contain_text("Approved")
    await expect(reader.locator(f"tr[data-id='{second}']")).not_to_contain_text("Approved")
    await expect(reader.locator(f"tr[data-id='{second}']")).to_have_attribute("data-open", "yes")


async def test_by_keyboard_alone_from_item_to_item(server: Server, reader: Page) -> None:
    ids = [ask(server, title=f"Keys {n}", type="keys_test", actions=[REFUND]) for n in (3, 2, 1)]
    await reader.goto(f"{server.url}/inbox?q=type:keys_test")
    await reader.keyboard.press("j")
    await reader.keyboard.press("Enter")
    await expect(reader.get_by_role("heading", name="Keys 1")).to_be_visible()
    await ready(reader)
    await reader.keyboard.press("a")
    await expect(reader.get_by_role("status")).to_contain_text("Approved: Keys 1")
    await expect(reader.get_by_role("heading", name="Keys 2")).to_be_visible()
    await reader.keyboard.press("z")
    await expect(reader.get_by_role("status")).to_contain_text("Undone: Keys 1")
    await reader.keyboard.press("j")
    await expect(reader.get_by_role("heading", name="Keys 2")).to_be_visible()
    await reader.keyboard.press("r")
    await reader.keyboard.type("not now")
    await reader.keyboard.press("Tab")
    await reader.keyboard.press("Enter")
    await expect(reader.get_by_role("status")).to_contain_text("Rejected: Keys 2")
    await ready(reader)
    await reader.keyboard.press("h")
    await expect(reader.get_by_role("button", name="Snooze for an hour")).to_be_focused()
    await reader.keyboard.press("Enter")
    await reader.keyboard.press("Control+k")
    await reader.keyboard.type("Insights")
    await expect(reader.get_by_role("button", name="Insights")).to_be_visible()
    await reader.keyboard.press("Escape")
    await reader.keyboard.press("?")
    await expect(reader.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert [stands(server, one)["status"] for one in ids] == ["PENDING", "REJECTED", "PENDING"]


async def test_chosen_rows_are_approved_together_after_a_preview(server: Server, reader: Page) -> None:
    ids = [ask(server, title=f"Bulk {n}", type="bulk_test", actions=[REFUND]) for n in range(3)]
    await reader.goto(f"{server.url}/inbox?q=type:bulk_test")
    await reader.keyboard.press("j")
    await reader.keyboard.press("x")
    await reader.get_by_role("checkbox", name="Select Bulk 0").check()
    await expect(reader.get_by_text("2 selected")).to_be_visible()
    await reader.reload()
    await expect(reader.get_by_text("2 selected")).to_be_visible()
    await reader.get_by_role("button", name="Approve…").click()
    await expect(reader.get_by_role("heading", name="Approve 2 of 2?")).to_be_visible()
    assert {stands(server, one)["status"] for one in ids} == {"PENDING"}
    await reader.get_by_role("button", name="Approve 2").click()
    await expect(reader.get_by_role("heading", name="2 of 2 decided")).to_be_visible()
    assert [stands(server, one)["status"] for one in ids] == ["APPROVED", "PENDING", "APPROVED"]


async def test_on_a_phone_an_item_is_decided(server: Server, browser: Browser) -> None:
    item_id = ask(server, title="On the road", type="phone_test", actions=[REFUND])
    size = {"width": 390, "height": 844}
    async with someone(browser, server, viewport=size, has_touch=True, is_mobile=True) as page:
        await page.goto(f"{server.url}/inbox?q=type:phone_test")
        await page.get_by_role("link", name="On the road").tap()
        await expect(page.locator("#list")).to_be_hidden()
        await page.get_by_role("button", name="Menu").tap()
        await expect(page.get_by_role("link", name="Insights")).to_be_visible()
        await page.keyboard.press("Escape")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.get_by_role("button", name="Approve", exact=True).tap()
        await expect(page.get_by_role("status")).to_contain_text("Approved: On the road")
    assert stands(server, item_id)["status"] == "APPROVED"


async def test_in_chinese_and_dark(server: Server, browser: Browser) -> None:
    item_id = ask(server, title="退款", actions=[REFUND])
    async with someone_speaking(browser, server) as page:
        await open_item(page, server, item_id)
        await expect(page.get_by_role("button", name="批准", exact=True)).to_be_visible()
        await page.get_by_text("设置", exact=True).click()
        await page.get_by_role("button", name="深色").click()
        assert await page.locator("html").get_attribute("data-theme") == "dark"
        ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert sum(json.loads(ground.removeprefix("rgb(").removesuffix(")").join("[]"))) < 150
        await page.get_by_role("button", name="批准", exact=True).click()
        await expect(page.get_by_role("status")).to_contain_text("已批准")


@asynccontextmanager
async def someone_speaking(browser: Browser, server: Server) -> AsyncIterator[Page]:
    async with await browser.new_context(locale="zh-CN") as theirs:
        page = await theirs.new_page()
        await page.goto(f"{server.url}/login")
        await page.get_by_label("登录令牌或审核人密钥").fill(server.said["reviewer key"].split()[0])
        await page.get_by_role("button", name="登录").click()
        await page.wait_for_url("**/inbox")
        yield page


async def test_without_a_connection_it_says_so_and_keeps_what_was_typed(server: Server, browser: Browser) -> None:
    item_id = ask(server, title="Offline", actions=[REFUND])
    async with someone(browser, server) as page:
        await open_item(page, server, item_id)
        await page.get_by_role("textbox", name="Comment").fill("Not lost")
        await _cut(page.context)
        await page.get_by_role("button", name="Comment", exact=True).click()
        await expect(page.get_by_role("alert")).to_contain_text("Not sent")
        assert await page.get_by_role("textbox", name="Comment").input_value() == "Not lost"
        await page.context.set_offline(False)
        await page.unroute_all()
        await page.get_by_role("button", name="Comment", exact=True).click()
        await expect(page.locator("#activity")).to_contain_text("Not lost")


async def _cut(context: BrowserContext) -> None:
    await context.set_offline(True)


async def test_two_tabs_share_one_stream(server: Server, browser: Browser) -> None:
    async with await browser.new_context() as context:
        opened: list[str] = []
        context.on("request", lambda one: opened.append(one.url) if "/api/inbox/events" in one.url else None)
        first = await context.new_page()
        await sign_in(first, server)
        await first.goto(f"{server.url}/inbox?q=type:tabs_test")
        second = await context.new_page()
        await second.goto(f"{server.url}/inbox?q=type:tabs_test")
        ask(server, title="For both", type="tabs_test")
        for page in (first, second):
            await expect(page.get_by_role("link", name="For both")).to_be_visible()
        assert len(opened) == 1, "the second tab has none"


async def test_item_created_before_the_stream_opens_is_shown(server: Server, reader: Page) -> None:
    async def create_first(route: Route) -> None:
        await asyncio.to_thread(ask, server, title="Early", type="early_test")
        await route.continue_()

    await reader.route("**/api/inbox/events*", create_first, times=1)
    await reader.goto(f"{server.url}/inbox?q=type:early_test")
    await expect(reader.get_by_role("link", name="Early")).to_be_visible()


async def test_item_created_while_another_tab_loads_is_shown_there(server: Server, browser: Browser) -> None:
    async with await browser.new_context() as context:
        first, second = await context.new_page(), await context.new_page()
        await sign_in(first, server)
        await first.goto(f"{server.url}/inbox?q=type:between_test")

        async def create_first(route: Route) -> None:
            await asyncio.to_thread(ask, server, title="Between", type="between_test")
            await expect(first.get_by_role("link", name="Between")).to_be_visible()
            await route.continue_()

        await second.route("**/live*.js*", create_first)
        await second.goto(f"{server.url}/inbox?q=type:between_test")
        await expect(second.get_by_role("link", name="Between")).to_be_visible()


async def test_the_pill_brings_what_is_new_and_leaves_the_rest(server: Server, reader: Page) -> None:
    for number in range(3):
        ask(server, title=f"Old {number}", type="pill_test")
    await reader.goto(f"{server.url}/inbox?q=type:pill_test")
    for number in range(2):
        ask(server, title=f"New {number}", type="pill_test")
    await reader.get_by_role("button", name="2 new").click()
    await expect(reader.locator("#rows tr")).to_have_count(5)


async def test_of_a_long_list_only_what_is_near_is_in_the_page(server: Server, reader: Page) -> None:
    ids = [ask(server, title=f"Long {number:03}", type="long_test") for number in range(150)]
    await reader.goto(f"{server.url}/inbox?q=type:long_test")
    rows = reader.locator("tr[data-id]")
    first, last = (reader.get_by_role("link", name=f"Long {number:03}") for number in (149, 0))
    async with asyncio.timeout(120):
        while not await last.count():
            await reader.locator("#list").evaluate("list => list.scrollTo(0, list.scrollHeight)")
            await reader.evaluate("new Promise(requestAnimationFrame)")
    await expect(first).to_have_count(0)
    assert await rows.count() < 130
    call(server, "POST", f"/api/inbox/items/{ids[-1]}/cancellation", json={})
    await expect(reader.get_by_role("link", name="Pending 149")).to_be_visible()
    await reader.locator("#list").evaluate("list => list.scrollTo(0, 0)")
    await expect(rows.filter(has=first)).to_contain_text("Withdrawn")
    await expect(last).to_have_count(0)
    await reader.keyboard.press("j")
    await expect(first).to_be_focused()


async def test_older_rows_that_did_not_come_are_asked_for_again(server: Server, page: Page) -> None:
    await sign_in(page, server)
    for number in range(60):
        ask(server, title=f"Older {number:03}", type="older_test")
    refused = []

    async def refuse_once(route: Route) -> None:
        refused.append(route.request.url)
        await (route.fulfill(status=429) if len(refused) == 1 else route.continue_())

    await page.route("**/inbox?*cursor=*", refuse_once)
    await page.goto(f"{server.url}/inbox?q=type:older_test")
    await page.locator("#list").evaluate("list => list.scrollTo(0, list.scrollHeight)")
    await expect(page.get_by_role("link", name="Older 000")).to_be_visible()
    assert len(refused) == 2


async def test_while_editing_there_is_one_approve_and_it_takes_the_edit(server: Server, reader: Page) -> None:
    item_id = ask(server, title="One button", actions=[REFUND])
    await open_item(reader, server, item_id)
    await reader.keyboard.press("e")
    await reader.get_by_role("textbox", name="note").fill("changed")
    await expect(reader.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    await reader.get_by_role("textbox", name="Comment").fill("said on the way")
    await reader.keyboard.press("Escape")
    await reader.keyboard.press("a")
    await expect(reader.get_by_role("status")).to_contain_text("Approved with 1 change: One button")
    decided = stands(server, item_id)
    assert decided["actions"][0]["args"]["note"] == "changed"
    assert decided["comments"] == 1, "a comment that was typed goes along"


async def test_no_key_decides_while_a_dialog_is_open(server: Server, reader: Page) -> None:
    item_id = ask(server, title="Not by a key", actions=[REFUND])
    await open_item(reader, server, item_id)
    await reader.keyboard.press("r")
    await reader.keyboard.press("Tab")
    await reader.keyboard.press("a")
    await expect(reader.get_by_role("dialog", name="Reject")).to_be_visible()
    assert stands(server, item_id)["status"] == "PENDING"


async def test_a_second_press_does_not_decide_the_next_item(server: Server, reader: Page) -> None:
    ids = [ask(server, title=f"Twice {n}", type="twice_test", actions=[REFUND]) for n in (2, 1)]
    await open_item(reader, server, ids[1], "?q=type:twice_test")
    await ready(reader)
    await reader.evaluate("""async () => {
      const shown = () => document.querySelector("#detail [data-item]").dataset.item;
      const first = shown();
      document.querySelector("#detail [data-key=a]").click();
      while (shown() === first) await new Promise(requestAnimationFrame);
      document.querySelector("#detail [data-key=a]").click();
    }""")
    await expect(reader.get_by_role("status")).to_contain_text("Approved: Twice 1")
    await expect(reader.get_by_role("heading", name="Twice 2")).to_be_visible()
    assert [stands(server, one)["status"] for one in ids] == ["PENDING", "APPROVED"]


async def test_what_was_chosen_and_typed_outlives_a_reload(server: Server, reader: Page) -> None:
    item_id = ask(server, title="Half done", actions=[REFUND, {"name": "close_account", "args": {"id": 7}}])
    await open_item(reader, server, item_id)
    async with reader.expect_response(lambda one: one.url.endswith("/claim")):
        await reader.get_by_role("group", name="Decision for refund").get_by_label("Reject").check()
        await reader.get_by_role("textbox", name="Comment").fill("not yet sent")
    await reader.reload()
    await expect(reader.get_by_role("group", name="Decision for refund").get_by_label("Reject")).to_be_checked()
    await expect(reader.get_by_role("textbox", name="Comment")).to_have_value("not yet sent")
    await reader.get_by_role("button", name="Comment", exact=True).click()
    await expect(reader.locator("#activity")).to_contain_text("not yet sent")
    await expect(reader.get_by_role("textbox", name="Comment")).to_have_value("")


async def test_secrets_are_shown_on_a_page_of_their_own(server: Server, reader: Page) -> None:
    schema = {"properties": {"password": {"type": "string", "writeOnly": True}}}
    item_id = ask(
        server, title="Secret", actions=[{"name": "login", "args": {"password": "hunter2"}, "schema": schema}]
    )
    await open_item(reader, server, item_id)
    async with reader.context.expect_page() as opened:
        await reader.get_by_role("button", name="Show the secrets").click()
    await expect((await opened.value).get_by_text("hunter2")).to_be_visible()
    await expect(reader.get_by_role("heading", name="Secret")).to_be_visible()
