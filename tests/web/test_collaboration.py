"""People who work on items together, on the pages: owners, mentions, saved reasons, and what a screen reader hears."""

from playwright.async_api import Page, expect

from assent.identity.model.access import Role
from tests.api.house import LOOPBACK
from tests.cli.command import Server
from tests.web.conftest import Desk
from tests.web.test_browser import ask, sign_in, stands
from tests.web.test_quality import RUN

SENT = {"origin": LOOPBACK, "sec-fetch-site": "same-origin"}


async def test_owner_stands_in_row_and_item_and_is_counted(desk: Desk) -> None:
    ben = await desk.house.signed_in("ben")
    item = await desk.ask(title="For Ben")
    assert (await desk.send(item["id"], "owner", owner="Ben")).status_code == 303
    shown = await desk.open(item["id"])
    assert "Assigned to ben" in shown
    assert "assigned this to" in shown
    assert "Owner: </span>ben" in (await desk.ana.get("/inbox")).text
    own = (await ben.get("/inbox?q=owner:me")).text
    assert 'aria-current="page"><svg' in own.partition("Assigned to me")[0][-300:]
    assert '<span class="count">1</span>' in own.partition("Assigned to me")[2][:60]
    refused = await desk.send(item["id"], "owner", owner="zoe")
    assert refused.status_code == 422
    assert "there is no reviewer" in refused.text
    assert 'value="zoe"' in refused.text
    assert (await desk.send(item["id"], "owner", to="me")).status_code == 303
    assert "Assigned to you" in await desk.open(item["id"])


async def test_mention_is_marked_and_listed(desk: Desk) -> None:
    ben = await desk.house.signed_in("ben")
    item = await desk.ask(title="Look at this")
    await desk.send(item["id"], "comments", comment="@ben <b>or</b> @nobody?")
    shown = await desk.open(item["id"])
    assert '<span class="mention">@ben</span> &lt;b&gt;or&lt;/b&gt; @nobody?' in shown
    listed = (await ben.get("/inbox?q=mentions:me")).text
    assert "Look at this" in listed
    assert '<span class="count">1</span>' in listed.partition("Mentions")[2][:60]
    assert "Look at this" not in (await desk.ana.get("/inbox?q=mentions:me")).text.partition("<main")[2]


async def test_saved_reason_is_managed_and_sent_without_scripts(desk: Desk, at_once: None) -> None:
    admin = await desk.house.signed_in("root", Role.ADMIN)
    path = "/inbox/settings/reasons"
    typed = {"name": "Too much", "text": "Over the limit.", "use": "both"}
    assert (await admin.post(path, data=typed, headers=SENT)).status_code == 303
    again = await admin.post(path, data=typed, headers=SENT)
    assert (again.status_code, "Over the limit." in again.text) == (409, True)
    assert "Add a reason" not in (await desk.ana.get(path)).text
    assert (await desk.ana.post(path, data=typed, headers=SENT)).status_code == 403
    call = {"action_requests": [{"name": "pay", "args": {"n": 1}}], "review_configs": [_REVIEWED]}
    item = await desk.raised(call)
    assert ">Too much</option>" in await desk.open(item["id"])
    await desk.decide(item["id"], "reject", saved="Over the limit.")
    assert await desk.answer(item) == {"decisions": [{"type": "reject", "message": "Over the limit."}]}


_REVIEWED = {"action_name": "pay", "allowed_decisions": ["approve", "reject"]}


async def test_names_and_reasons_are_completed_by_keyboard(server: Server, quiet_page: Page, axe: str) -> None:
    page = quiet_page
    await sign_in(page, server)
    saved = {"name": "Too much", "text": "Over the limit."}
    await page.request.post(f"{server.url}/api/reasons", data=saved)
    item_id = ask(server, title="Together")
    await page.goto(f"{server.url}/inbox/{item_id}")
    comment = page.get_by_role("textbox", name="Comment")
    await comment.press_sequentially("Ask @loc")
    await expect(page.get_by_role("option", name="local")).to_be_visible()
    await page.evaluate(axe)
    assert await page.evaluate(RUN) == []
    await comment.press("Enter")
    await expect(comment).to_have_value("Ask @local ")
    await expect(page.get_by_role("listbox")).to_have_count(0)
    await comment.press("Control+Enter")
    await expect(page.locator(".mention")).to_have_text("@local")
    await page.get_by_role("heading", name="Together").focus()
    await page.keyboard.press("m")
    await expect(page.locator(".head")).to_contain_text("Assigned to you")
    await page.get_by_role("button", name="Reject…").press("Enter")
    reason = page.get_by_role("textbox", name="Reason")
    await reason.fill("No.")
    await page.keyboard.press("Tab")
    await page.keyboard.press("ArrowDown")
    await expect(reason).to_have_value("No.\nOver the limit.")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("status")).to_contain_text("Rejected: Together")
    assert stands(server, item_id)["decisions"][0]["actions"][0]["message"] == "No.\nOver the limit."


async def test_first_links_lead_to_the_content_and_to_the_item(server: Server, quiet_page: Page) -> None:
    await sign_in(quiet_page, server)
    item_id = ask(server, title="Skipped to")
    await quiet_page.goto(f"{server.url}/inbox/{item_id}")
    await quiet_page.keyboard.press("Tab")
    await quiet_page.keyboard.press("Tab")
    await expect(quiet_page.get_by_role("link", name="Skip to the item")).to_be_focused()
    await quiet_page.keyboard.press("Enter")
    await expect(quiet_page.get_by_role("heading", name="Skipped to")).to_be_focused()


TOLD = """({ item, hash, status }) => {
  const change = { kind: "item.undone", item: { id: item, hash, status } };
  new BroadcastChannel("assent-live").postMessage({ number: Date.now(), change });
}"""


async def test_event_that_changes_nothing_shown_raises_no_notice(server: Server, quiet_page: Page) -> None:
    """Such as the event of the reader's own undo, while they type; one about another revision does."""
    await sign_in(quiet_page, server)
    item_id = ask(server, title="Undone")
    await quiet_page.goto(f"{server.url}/inbox/{item_id}")
    await quiet_page.get_by_role("textbox", name="Comment").fill("as I said")
    item = stands(server, item_id)
    shown = {"item": item_id, "hash": item["hash"], "status": "PENDING"}
    async with quiet_page.expect_response(lambda response: response.url.endswith("/inbox")):
        await quiet_page.evaluate(TOLD, shown)
    await expect(quiet_page.locator(".stale")).to_have_count(0)
    await quiet_page.evaluate(TOLD, {**shown, "hash": "another"})
    await expect(quiet_page.locator(".stale")).to_contain_text("This item changed after you opened it.")
