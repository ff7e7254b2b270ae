"""Nothing is approved by accident: the ways in which a reviewer once approved what they did not mean, each tried in a
real browser, with a slow network where that matters."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.cli.command import Server, serving
from tests.web.conftest import GRAPHS
from tests.web.test_browser import ask, sign_in, stands

CALLS = [
    {
        "key": "0",
        "name": "refund_payment",
        "args": {"order": 4711, "amount": 249.9, "currency": "EUR"},
        "allowed": ["approve", "edit", "reject"],
    },
    {"key": "1", "name": "send_note", "args": {"text": "Sorry"}, "allowed": ["approve", "edit", "reject"]},
    {"key": "2", "name": "close_case", "args": {"case": 7}, "allowed": ["approve", "reject"]},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Agents that speak before they call, and a gate that observes what their calls do."""
    database = f"sqlite:///{tmp_path_factory.mktemp('safety') / 'assent.db'}"
    arguments = ("dev", "--port", "0", "--no-reload", "--config", str(GRAPHS), "--database", database)
    with serving(Path(GRAPHS).parent, *arguments) as running:
        yield running


@pytest.fixture
async def reader(quiet_page: Page, server: Server) -> Page:
    await sign_in(quiet_page, server)
    return quiet_page


def call(server: Server, method: str, path: str, **sent: Any) -> Any:
    key = {"x-api-key": server.said["agent key"].split()[0]}
    answer = httpx.request(method, f"{server.url}{path}", headers=key, trust_env=False, timeout=60, **sent)
    assert answer.status_code < 300, answer.text
    return answer.json()


def pause(server: Server, graph: str, wish: str) -> dict[str, Any]:
    """The item of an agent that was asked for something."""
    thread = call(server, "POST", "/threads", json={"metadata": {"title": "Order 4711"}})["thread_id"]
    body = {"assistant_id": graph, "input": {"messages": [{"type": "human", "content": wish}]}}
    call(server, "POST", f"/threads/{thread}/runs/wait", json=body)
    return dict(call(server, "GET", f"/api/inbox/items?filter=thread:{thread}")["items"][0])


async def slow(page: Page, milliseconds: int) -> None:
    """A network that takes its time with every item and every decision."""

    async def wait(route: Route) -> None:
        await page.wait_for_timeout(milliseconds)
        await route.continue_()

    await page.route(re.compile(r"/inbox/[0-9a-f-]{36}"), wait)


async def ready(page: Page) -> None:
    """The item is shown, and its bar takes decisions."""
    await expect(page.locator("#detail:not([inert]) #bar:not([inert])")).to_be_visible()


def amount_of(server: Server, item_id: str) -> Any:
    return stands(server, item_id)["actions"][0]["args"]["amount"]


# 1. A changed field is never dropped


@pytest.mark.promise("SAFE-01", "HITL-25")
async def test_change_in_one_of_several_actions_reaches_approve_all(server: Server, reader: Page) -> None:
    item_id = ask(server, title="Three", actions=CALLS)
    await reader.goto(f"{server.url}/inbox/{item_id}")
    first = reader.locator("[data-action='a0.']")
    await first.get_by_role("group", name="Decision for refund_payment").get_by_label("Edit").check()
    await first.get_by_role("textbox", name="amount").fill("49.9")
    button = reader.get_by_role("button", name="Approve all 3 with 1 change")
    await expect(reader.locator("[data-says]")).to_have_text("Run 3 (1 changed)")
    await expect(button).to_be_visible()
    await expect(reader.get_by_role("button", name="Approve all 3", exact=True)).to_have_count(0)
    await first.get_by_label("Approve", exact=True).click()
    await expect(reader.get_by_role("alert")).to_contain_text("Discard the changes first")
    await expect(first.get_by_label("Edit")).to_be_checked()
    await button.click()
    await expect(reader.get_by_role("status")).to_contain_text("Approved")
    assert amount_of(server, item_id) == 49.9


@pytest.mark.promise("SAFE-01")
async def test_change_survives_the_collapse_of_its_panel(server: Server, reader: Page) -> None:
    item_id = ask(server, title="One", actions=CALLS[:1])
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await reader.locator("summary", has_text="Edit").click()
    await reader.get_by_role("textbox", name="amount").fill("49.9")
    await reader.locator("summary", has_text="Edit").click()
    await expect(reader.get_by_role("textbox", name="amount")).to_be_hidden()
    await expect(reader.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    await expect(reader.locator(".pending-edits")).to_contain_text("249.9")
    await reader.keyboard.press("Escape")
    await reader.keyboard.press("a")
    await expect(reader.get_by_role("status")).to_contain_text("Approved with 1 change")
    assert amount_of(server, item_id) == 49.9


@pytest.mark.promise("SAFE-01")
async def test_discarded_change_is_gone_everywhere(server: Server, reader: Page) -> None:
    item_id = ask(server, title="Discarded", actions=CALLS[:1])
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await reader.locator("summary", has_text="Edit").click()
    async with reader.expect_response(lambda one: one.url.endswith("/draft")):
        await reader.get_by_role("textbox", name="amount").fill("49.9")
    async with reader.expect_response(lambda one: one.url.endswith("/draft")):
        await reader.get_by_role("button", name="Discard changes").click()
    await expect(reader.get_by_role("textbox", name="amount")).to_have_value("249.9")
    await reader.reload()
    await expect(reader.get_by_role("button", name="Discard changes")).to_be_hidden()
    await reader.get_by_role("button", name="Approve", exact=True).click()
    await expect(reader.get_by_role("status")).to_contain_text("Approved: Discarded")
    assert amount_of(server, item_id) == 249.9


@pytest.mark.promise("SAFE-01")
async def test_discarded_change_does_not_come_back_with_an_update(server: Server, reader: Page) -> None:
    item_id = ask(server, title="Updated", actions=CALLS[:1])
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await reader.locator("summary", has_text="Edit").click()
    async with reader.expect_response(lambda one: one.url.endswith("/claim")):
        await reader.get_by_role("textbox", name="amount").fill("49.9")
    commented, saved = asyncio.Event(), re.compile("/draft$")

    async def wait(route: Route) -> None:
        await commented.wait()
        await route.continue_()

    await reader.route(saved, wait)
    async with reader.expect_response(lambda one: "/inbox?" in one.url or one.url.endswith("/inbox")):
        await reader.get_by_role("button", name="Discard changes").click()
        call(server, "POST", f"/api/inbox/items/{item_id}/comments", json={"text": "Look again"})
    async with reader.expect_response(saved):
        commented.set()
    await expect(reader.locator("#activity")).to_contain_text("Look again")
    await expect(reader.locator("[name='a0.arg.amount']")).to_have_value("249.9")
    await expect(reader.get_by_role("button", name="Approve", exact=True)).to_be_visible()


# 2. A key acts only on the item that is shown and focused


@pytest.mark.promise("SAFE-02")
async def test_key_pressed_while_the_next_item_loads_decides_nothing(server: Server, reader: Page) -> None:
    ids = [ask(server, title=f"Slow {n}", type="slow_test", actions=CALLS[:1]) for n in (2, 1)]
    await reader.goto(f"{server.url}/inbox/{ids[1]}?q=type:slow_test")
    await ready(reader)
    await slow(reader, 800)
    await reader.keyboard.press("j")
    await expect(reader.locator("#bar")).to_contain_text("Loading the item…")
    await reader.keyboard.press("a")
    await expect(reader.get_by_role("alert")).to_contain_text("“a” was ignored")
    await expect(reader.get_by_role("heading", name="Slow 2", level=2)).to_be_visible()
    await ready(reader)
    await reader.unroute_all(behavior="ignoreErrors")
    assert [stands(server, one)["status"] for one in ids] == ["PENDING", "PENDING"]


@pytest.mark.promise("SAFE-02")
async def test_key_acts_on_no_item_when_the_selected_one_failed_to_open(server: Server, page: Page) -> None:
    await sign_in(page, server)
    ids = [ask(server, title=f"Lost {n}", type="lost_test", actions=CALLS[:1]) for n in (2, 1)]
    await page.goto(f"{server.url}/inbox/{ids[1]}?q=type:lost_test")
    await ready(page)
    await page.route(re.compile(ids[0]), lambda route: route.abort())
    await page.keyboard.press("j")
    await expect(page.get_by_role("alert")).to_contain_text("Not sent")
    await page.keyboard.press("a")
    await expect(page.get_by_role("alert")).to_contain_text("Another item is selected")
    assert [stands(server, one)["status"] for one in ids] == ["PENDING", "PENDING"]


# 3. The negative key, and text that is no shortcut

TYPES = """async ([text, delay]) => {
  for (const key of text) {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    await new Promise((resolve) => setTimeout(resolve, delay));
  }
}"""
"""Types in the page itself, whose clock also decides what is quick: a busy machine delays both alike."""


@pytest.mark.promise("SAFE-03")
async def test_negative_key_opens_the_only_negative_verb(server: Server, reader: Page) -> None:
    ids = [
        ask(server, title=f"Mail {n}", type="burst_test", actions=[{**CALLS[0], "allowed": ["approve", "ignore"]}])
        for n in (2, 1)
    ]
    await reader.goto(f"{server.url}/inbox/{ids[1]}?q=type:burst_test")
    await ready(reader)
    await reader.keyboard.press("r")
    await expect(reader.get_by_role("dialog", name="Ignore")).to_be_visible()
    await reader.keyboard.type("Not a customer, cancel and revise", delay=20)
    assert [stands(server, one)["status"] for one in ids] == ["PENDING", "PENDING"]
    await reader.get_by_role("dialog", name="Ignore").get_by_role("button", name="Ignore").click()
    await expect(reader.get_by_role("status")).to_contain_text("Ignored: Mail 1")


@pytest.mark.promise("SAFE-03")
@pytest.mark.parametrize("delay", [20, 120])
async def test_text_typed_without_a_field_triggers_nothing(server: Server, reader: Page, delay: int) -> None:
    kind = f"text_test_{delay}"
    ids = [ask(server, title=f"Text {n}", type=kind, actions=CALLS[:1]) for n in (2, 1)]
    await reader.goto(f"{server.url}/inbox/{ids[1]}?q=type:{kind}")
    await ready(reader)
    await reader.evaluate(TYPES, ["approve all of a and a", delay])
    await expect(reader.get_by_role("alert")).to_contain_text("no shortcut was used")
    await expect(reader.get_by_role("heading", name="Text 1", level=2)).to_be_visible()
    await expect(reader.get_by_role("textbox", name="Comment")).to_have_value("")
    assert [stands(server, one)["status"] for one in ids] == ["PENDING", "PENDING"]
    await reader.keyboard.press("Escape")
    await reader.keyboard.press("a")
    await expect(reader.get_by_role("status")).to_contain_text("Approved: Text 1")


@pytest.mark.promise("SAFE-03")
async def test_enter_in_a_field_of_the_decision_sends_nothing(server: Server, reader: Page) -> None:
    item_id = ask(server, title="Enter", actions=CALLS[:2])
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await ready(reader)
    first, second = reader.locator("[data-action='a0.']"), reader.locator("[data-action='a1.']")
    await second.get_by_label("Approve", exact=True).focus()
    await reader.keyboard.press("Enter")
    await expect(second.get_by_label("Approve", exact=True)).to_be_checked()
    await first.get_by_label("Edit").check()
    for value in ("249.9", "49.9"):
        await first.get_by_role("textbox", name="amount").fill(value)
        await reader.keyboard.press("Enter")
        await expect(reader.get_by_role("alert")).to_contain_text("“Enter” was ignored. Ctrl Enter sends")
    assert stands(server, item_id)["status"] == "PENDING"
    await reader.keyboard.press("Control+Enter")
    await expect(reader.get_by_role("status")).to_contain_text("Approved")
    assert amount_of(server, item_id) == 49.9


@pytest.mark.promise("SAFE-03")
async def test_enter_without_scripts_approves_nothing(server: Server, browser: Browser) -> None:
    item_id = ask(server, title="Enter", actions=CALLS[:1])
    async with await browser.new_context(java_script_enabled=False) as context:
        page = await context.new_page()
        await sign_in(page, server)
        await page.goto(f"{server.url}/inbox/{item_id}")
        await page.locator("summary", has_text="Edit").click()
        await page.get_by_role("textbox", name="amount").press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("choose a decision")
    assert stands(server, item_id)["status"] == "PENDING"


@pytest.mark.promise("SAFE-03")
async def test_high_risk_is_approved_by_key_only_after_a_confirmation(server: Server, reader: Page) -> None:
    item_id = ask(server, title="Risky", actions=[{"name": "run_shell", "args": {"command": "sudo rm -rf / | sh"}}])
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await ready(reader)
    await reader.keyboard.press("a")
    await expect(reader.get_by_role("alert")).to_contain_text("High risk")
    assert stands(server, item_id)["status"] == "PENDING"
    await reader.keyboard.press("Space")
    await reader.keyboard.press("Escape")
    await reader.keyboard.press("a")
    await expect(reader.get_by_role("status")).to_contain_text("Approved: Risky")


# 4. Bulk


@pytest.mark.promise("SAFE-04")
async def test_bulk_decision_has_cautions_and_undo_and_back_works(server: Server, reader: Page) -> None:
    danger = {"name": "run_shell", "args": {"command": "sudo rm -rf /srv | sh"}}
    mail = {
        "name": "send_email",
        "args": {"from": "a@here.example", "to": "b@there.example", "subject": "Hi", "body": "Hello"},
    }
    ids = [ask(server, title=f"Many {n}", type="many_test", actions=[CALLS[0]]) for n in (1, 2)]
    ids += [
        ask(server, title=title, type="many_test", actions=[one])
        for title, one in (("Risky", danger), ("Outside", mail))
    ]
    await reader.goto(f"{server.url}/inbox")
    await reader.goto(f"{server.url}/inbox?q=type:many_test")
    for title in ("Many 1", "Many 2", "Risky", "Outside"):
        await reader.get_by_role("checkbox", name=f"Select {title}").check()
    await reader.get_by_role("button", name="Approve…").click()
    dialog = reader.get_by_role("dialog")
    await expect(dialog.get_by_role("heading")).to_have_text("Approve 3 of 4?")
    await expect(dialog.get_by_role("row", name=re.compile("^Risky"))).to_contain_text("one at a time")
    await expect(dialog.get_by_role("row", name=re.compile("^Outside"))).to_contain_text("despite the caution")
    await dialog.get_by_role("checkbox").check()
    await dialog.get_by_role("button", name="Approve 3").click()
    await expect(dialog.get_by_role("heading")).to_have_text("3 of 3 decided")
    await dialog.get_by_role("button", name="Undo all 3").click()
    await expect(dialog.get_by_role("heading")).to_have_text("3 of 3 undone")
    assert {stands(server, one)["status"] for one in ids} == {"PENDING"}
    await dialog.get_by_role("link", name="Back to the inbox").click()
    await expect(dialog).to_have_count(0)
    await reader.go_back()
    await expect(reader).to_have_url(f"{server.url}/inbox")
    await expect(reader.locator("#rows tr").first).to_be_visible()


# 5. Risk per action


@pytest.mark.promise("SAFE-05")
async def test_risk_stands_beside_its_own_action(server: Server, reader: Page) -> None:
    danger = {"key": "9", "name": "run_shell", "args": {"command": "sudo rm -rf /srv | sh"}}
    item_id = ask(server, title="Mixed", actions=[CALLS[1], danger])
    await reader.goto(f"{server.url}/inbox/{item_id}")
    harmless, risky = reader.locator("[data-action='a0.']"), reader.locator("[data-action='a1.']")
    await expect(risky).to_contain_text("High risk")
    await expect(risky.locator(".warn").first).to_be_visible()
    await expect(harmless).not_to_contain_text("risk")
    await expect(harmless.locator(".warn")).to_have_count(0)
    for section in (harmless, risky):
        await section.get_by_label("Reject", exact=True).check()
    await expect(reader.locator("[data-says]")).to_have_text("Reject 2")
    await reader.get_by_role("button", name="Confirm").click()
    await expect(reader.get_by_role("status")).to_contain_text("Rejected: Mixed")


# 6. What became of the call


@pytest.mark.promise("SAFE-06", "REVIEW-46")
async def test_page_follows_the_call_to_its_result(server: Server, reader: Page) -> None:
    item = pause(server, "payments", "raise the limit")
    await reader.goto(f"{server.url}/inbox/{item['id']}")
    await expect(reader.locator(".context")).to_contain_text("raise the limit")
    await reader.get_by_role("button", name="Approve", exact=True).click()
    await expect(reader.get_by_role("status")).to_contain_text("Approved")
    await reader.goto(f"{server.url}/inbox/{item['id']}")
    await expect(reader.locator(".outcome")).to_contain_text("Succeeded")
    await expect(reader.locator(".outcome")).to_contain_text("checkout.per_minute is 1200")
    await expect(reader.locator("#activity")).to_contain_text("finished the call")
    assert stands(server, item["id"])["execution"] == "done"


@pytest.mark.promise("SAFE-06")
async def test_page_shows_the_error_of_a_call_that_failed(server: Server, reader: Page) -> None:
    item = pause(server, "payments", "only refund, too much of it")
    await reader.goto(f"{server.url}/inbox/{item['id']}")
    await reader.get_by_role("button", name="Approve", exact=True).click()
    await expect(reader.get_by_role("status")).to_contain_text("Approved")
    await reader.goto(f"{server.url}/inbox/{item['id']}")
    await expect(reader.locator(".outcome")).to_contain_text("over the limit")
    await expect(reader.locator(".outcome")).to_contain_text("Failed")


@pytest.mark.promise("SAFE-06")
async def test_without_a_gate_the_page_shows_what_the_agent_reports(server: Server, reader: Page) -> None:
    item = pause(server, "support", "only refund")
    await reader.goto(f"{server.url}/inbox/{item['id']}")
    await reader.get_by_role("button", name="Approve", exact=True).click()
    await expect(reader.get_by_role("status")).to_contain_text("Approved")
    await reader.goto(f"{server.url}/inbox/{item['id']}")
    for _ in range(60):
        if "refunded" in await reader.locator("#detail").inner_text():
            break
        await reader.wait_for_timeout(500)
        await reader.reload()
    await expect(reader.locator(".outcome")).to_contain_text("refunded 249.9 EUR to order 4711")
    await expect(reader.locator("#detail")).not_to_contain_text("not started")


# 7. The session ends while somebody edits


async def end_session(page: Page) -> None:
    """The cookie is there, but the server does not know it any longer."""
    for cookie in await page.context.cookies():
        spent = {"name": cookie["name"], "domain": cookie["domain"], "path": cookie["path"], "value": "0" * 43}
        if "session" in cookie["name"]:
            await page.context.add_cookies([spent])  # type: ignore[list-item]


@pytest.mark.promise("SAFE-07")
@pytest.mark.parametrize("end", [end_session, lambda page: page.context.clear_cookies()], ids=["unknown", "gone"])
async def test_edit_outlives_the_session_and_goes_on_in_place(
    server: Server, page: Page, end: Callable[[Page], Awaitable[None]]
) -> None:
    await sign_in(page, server)
    item_id = ask(server, title="Signed out", actions=CALLS[:1])
    await page.goto(f"{server.url}/inbox/{item_id}")
    await page.locator("summary", has_text="Edit").click()
    await end(page)
    await page.get_by_role("textbox", name="amount").fill("49.9")
    await expect(page.get_by_role("alert")).to_contain_text("You are signed out")
    await page.get_by_role("button", name="Approve with 1 change").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Your text is kept in this browser")
    await dialog.get_by_label("Sign-in token or reviewer key").fill("wrong")
    await dialog.get_by_role("button", name="Sign in").click()
    await expect(dialog.locator(".notice")).to_be_visible()
    await dialog.get_by_label("Sign-in token or reviewer key").fill(server.said["reviewer key"].split()[0])
    await dialog.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("status")).to_contain_text("Approved with 1 change: Signed out")
    assert amount_of(server, item_id) == 49.9


@pytest.mark.promise("SAFE-07")
async def test_edit_outlives_a_reload_without_a_connection(server: Server, page: Page) -> None:
    await sign_in(page, server)
    item_id = ask(server, title="Cut off", actions=CALLS[:1])
    await page.goto(f"{server.url}/inbox/{item_id}")
    await page.route("**/draft", lambda route: route.abort())
    await page.locator("summary", has_text="Edit").click()
    async with page.expect_event("requestfailed"):
        await page.get_by_role("textbox", name="amount").fill("49.9")
    page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
    await page.unroute("**/draft")
    await page.goto(f"{server.url}/inbox/{item_id}")
    await expect(page.get_by_role("textbox", name="amount")).to_have_value("49.9")
    await expect(page.get_by_role("button", name="Approve with 1 change")).to_be_visible()


# 8. Secrets


@pytest.mark.promise("SAFE-08")
async def test_secret_is_masked_in_list_item_bulk_and_draft(server: Server, reader: Page) -> None:
    secret = "sk-live-4711"
    action = {"name": "rotate", "args": {"api_key": secret, "note": "replaces the old one"}}
    item_id = ask(server, title=f"Rotate {secret}", type="secret_test", actions=[action])
    await reader.goto(f"{server.url}/inbox?q=type:secret_test")
    assert secret not in await reader.content()
    await reader.get_by_role("checkbox").first.check()
    await reader.get_by_role("button", name="Approve…").click()
    await expect(reader.get_by_role("dialog")).to_contain_text("rotate")
    assert secret not in await reader.content()
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await reader.locator("summary", has_text="Edit").click()
    assert secret not in await reader.content()
    async with reader.expect_request(lambda one: one.url.endswith("/draft")) as sent:
        await reader.get_by_role("textbox", name="note").fill("changed")
    assert secret not in json.dumps((await sent.value).post_data)
    async with reader.context.expect_page() as opened:
        await reader.get_by_role("button", name="Show the secrets").click()
    await expect((await opened.value).get_by_text(secret).first).to_be_visible()
    await reader.reload()
    await expect(reader.locator("#activity")).to_contain_text("viewed the secrets")


# 9. The trail of a revision


@pytest.mark.promise("SAFE-09")
async def test_trail_stays_whole_when_the_agent_asks_something_else(server: Server, reader: Page) -> None:
    item = pause(server, "support", "only refund")
    await reader.goto(f"{server.url}/inbox/{item['id']}")
    await reader.get_by_role("button", name="Revise…").click()
    await reader.get_by_role("dialog").get_by_role("textbox").fill("Offer a voucher instead")
    await reader.get_by_role("dialog").get_by_role("button", name="Request revision").click()
    await expect(reader.get_by_role("status")).to_contain_text("Revision requested")
    thread = item["source"]["thread_id"]
    async with asyncio.timeout(60):
        while len(found := call(server, "GET", f"/api/inbox/items?filter=thread:{thread}")["items"]) < 2:
            await reader.wait_for_timeout(200)
    [after] = [one for one in found if one["id"] != item["id"]]
    assert after["follows"] == item["id"]
    await reader.goto(f"{server.url}/inbox/{after['id']}")
    notes = reader.locator(".requested")
    await expect(notes).to_contain_text("Offer a voucher instead")
    await expect(notes.locator("del").first).to_contain_text("refund_payment")
    await expect(notes.locator("ins").first).to_contain_text("issue_voucher")
    await notes.get_by_role("link", name="Refund €").click()
    await expect(reader.locator(".onward")).to_contain_text("The agent asked something else instead")
    await reader.locator(".onward").get_by_role("link", name="Issue voucher: order 4711").click()
    await expect(reader.get_by_role("heading", level=2)).to_contain_text("Issue voucher")
