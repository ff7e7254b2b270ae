"""The inbox in a real browser: without scripts, with the keyboard, and against hostile content."""

import re
from collections.abc import AsyncIterator
from typing import Any, Literal

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.cli.command import Server
from tests.web.contrast import CONTRAST

HOSTILE = (
    "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'> \u202egnp.exe\u202c a\u200bb 'q' \"d\" `t`"
)
WORDS = f"""# {HOSTILE}

[a link](javascript:window.ran=1) [another](https://evil.example/path) ![picture](https://evil.example/x.png)

<a href="javascript:window.ran=1">raw</a> <style>* {{ display: none }}</style> <base href="https://evil.example">

| {HOSTILE} | b |
|---|---|
| 1 | <iframe src="https://evil.example"></iframe> |
"""
UGLY: dict[str, Any] = {
    "type": "tool",
    "title": f"Ugly {HOSTILE}",
    "description": WORDS,
    "actions": [
        {
            "key": str(number),
            "name": f"run {HOSTILE}",
            "args": {
                HOSTILE: HOSTILE,
                "url": "javascript:window.ran=1",
                "javascript:alert(1)": 12345678901234567890,
                "long": "x" * 3000,
                "rtl": "שלום עולם",
                "deep": {"a": [{"b": HOSTILE}, 598.0, None, True]},
            },
            "description": WORDS,
        }
        for number in range(3)
    ],
    "entity": {"type": HOSTILE, "id": HOSTILE},
}


def ask(server: Server, **request: Any) -> str:
    key = {"x-api-key": server.said["agent key"].split()[0]}
    asked = {"type": "tool", "title": "Refund order 598"} | request
    made = httpx.post(f"{server.url}/api/inbox/items", json=asked, headers=key, trust_env=False, timeout=30)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def stands(server: Server, item_id: str) -> dict[str, Any]:
    key = {"x-api-key": server.said["reviewer key"].split()[0]}
    return dict(httpx.get(f"{server.url}/api/inbox/items/{item_id}", headers=key, trust_env=False, timeout=30).json())


async def sign_in(page: Page, server: Server) -> None:
    """Through the API, because two pages cost more than most tests; `test_login.py` uses the form."""
    credential = {"credential": server.said["reviewer key"].split()[0]}
    answer = await page.context.request.post(f"{server.url}/api/session", data=credential)
    assert answer.ok, await answer.text()


@pytest.fixture
async def reader(quiet_page: Page, server: Server) -> AsyncIterator[Page]:
    """A signed-in person whose page neither complains nor calls anyone else."""
    requested: list[str] = []
    quiet_page.on("request", lambda request: requested.append(request.url))
    await sign_in(quiet_page, server)
    yield quiet_page
    assert [url for url in requested if not url.startswith(server.url)] == []


async def test_without_scripts_the_demos_draft_is_read_and_approved(server: Server, browser: Browser) -> None:
    async with await browser.new_context(java_script_enabled=False) as context:
        page = await context.new_page()
        await sign_in(page, server)
        await page.goto(f"{server.url}/inbox")
        await page.locator("a[href^='/inbox/']", has_text=re.compile("e-?mail", re.IGNORECASE)).first.click()
        await expect(page.locator(".rendering")).to_contain_text("Re: ")
        await page.locator(".exact > summary").first.click()
        await expect(page.get_by_role("row", name=re.compile("^subject "))).to_contain_text("Re: ")
        await expect(page.get_by_text("Agent’s explanation")).to_be_visible()
        item_id = page.url.rpartition("/")[2]
        heading = await page.get_by_role("heading", level=2).first.inner_text()
        await page.get_by_role("button", name="Approve", exact=True).click()
        await expect(page.get_by_role("status")).to_contain_text(f"Approved: {heading}")
        await expect(page.get_by_role("button", name="Undo")).to_be_visible()
        assert stands(server, item_id)["status"] == "APPROVED"


@pytest.mark.promise("INBOX-18", "HITL-24")
async def test_one_field_is_edited_and_counted(server: Server, reader: Page) -> None:
    item_id = ask(server, actions=[{"name": "refund", "args": {"order": 598, "amount": 598.0, "note": "twice\nor so"}}])
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await reader.locator("summary", has_text="Edit").click()
    await expect(reader.locator(".edit .hint")).to_contain_text("can make the agent’s model plan again")
    await expect(reader.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    await reader.get_by_role("textbox", name="note").fill("paid twice\nindeed")
    await reader.get_by_role("button", name="Approve with 1 change").click()
    await expect(reader.get_by_role("status")).to_contain_text("Approved with 1 change: Refund order 598")
    decided = stands(server, item_id)
    assert decided["actions"][0]["args_text"] == '{"amount":598.0,"note":"paid twice\\nindeed","order":598}'
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await expect(reader.locator("aside")).to_contain_text("Approved with 1 change")
    await expect(reader.locator(".changes del").first).to_contain_text("twice\\nor so")


async def test_an_untouched_form_sent_by_a_browser_is_a_plain_approval(server: Server, reader: Page) -> None:
    args = {"order": 598, "amount": 598.0, "text": "\n a\r\nb \t", "tick": False, "none": None, "list": [1, "\u202e"]}
    item_id = ask(server, actions=[{"name": "refund", "args": args}])
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await reader.locator("summary", has_text="Edit").click()
    await reader.get_by_role("button", name="Approve", exact=True).click()
    await expect(reader.get_by_role("status")).to_contain_text("Approved: ")
    assert (stands(server, item_id)["resolution"], stands(server, item_id)["revision"]) == ("accepted", 1)


async def test_each_of_several_calls_gets_its_own_answer(server: Server, reader: Page) -> None:
    """Respond stands beside the arguments for Edit, which are sent along and must not be taken for the answer."""
    allowed = ["approve", "edit", "reject", "respond"]
    calls = [{"key": str(n), "name": f"mail_{n}", "args": {"to": f"{n}@b.c"}, "allowed": allowed} for n in range(3)]
    calls.append({"key": "3", "name": "ping", "args": {}, "allowed": allowed})
    item_id = ask(server, actions=calls)
    await reader.goto(f"{server.url}/inbox/{item_id}")
    chosen = {"mail_0": "Respond", "mail_1": "Edit", "mail_2": "Approve", "ping": "Respond"}
    for place, (name, verb) in enumerate(chosen.items()):
        group = reader.get_by_role("group", name=f"Decision for {name}")
        await group.get_by_label(verb, exact=True).check()
        if verb == "Respond":
            await reader.locator(f"[data-action='a{place}.']").get_by_label("Sent to the agent").fill(f"not {name}")
    await reader.locator("[name='a1.arg.to']").fill("new@b.c")
    await expect(reader.locator("[data-says]")).to_have_text("Run 2 (1 changed), answer 2")
    await reader.get_by_role("button", name="Confirm with 1 change").click()
    await expect(reader.get_by_role("status")).to_contain_text("Refund order 598")
    decided = stands(server, item_id)
    assert decided["status"] == "APPROVED"
    [decision] = decided["decisions"]
    said = {one["key"]: (one["verb"], one.get("message"), one.get("args")) for one in decision["actions"]}
    assert said["0"] == ("respond", "not mail_0", None)
    assert said["1"] == ("edit", None, {"to": "new@b.c"})
    assert said["2"] == ("approve", None, None)
    assert said["3"] == ("respond", "not ping", None)


@pytest.mark.promise("REVIEW-17")
async def test_the_keyboard_alone_rejects_with_a_reason_and_takes_it_back(server: Server, reader: Page) -> None:
    item_id = ask(server, title="By keyboard", actions=[{"name": "refund", "args": {"order": 1}}])
    await reader.goto(f"{server.url}/inbox?q=keyboard")
    await reader.keyboard.press("?")
    await expect(reader.get_by_role("dialog")).to_contain_text("reject, with a reason")
    await reader.keyboard.press("Escape")
    await reader.keyboard.press("j")
    await reader.keyboard.press("Enter")
    await reader.wait_for_url(f"**/inbox/{item_id}?q=keyboard")
    await reader.keyboard.press("r")
    await reader.keyboard.type("Not a refund; z and a are letters here")
    await reader.keyboard.press("Tab")
    await reader.keyboard.press("Enter")
    await expect(reader.get_by_role("status")).to_contain_text("Rejected: By keyboard")
    await reader.keyboard.press("z")
    await expect(reader.get_by_role("status")).to_contain_text("Undone")
    await expect(reader.locator("#detail:not([inert]) #bar:not([inert])")).to_be_visible()
    said = stands(server, item_id)["decisions"][0]["actions"][0]
    assert said["message"] == "Not a refund; z and a are letters here"
    await reader.keyboard.press("a")
    await expect(reader.get_by_role("status")).to_contain_text("Approved: By keyboard")


@pytest.mark.promise("P11", "INBOX-19")
async def test_hostile_content_is_inert_and_visible(server: Server, reader: Page) -> None:
    item_id = ask(server, **UGLY)
    asked = [{"name": "run", "args": {"cmd": HOSTILE, "url": "javascript:window.ran=1"}}]
    alone = ask(server, title=HOSTILE, description=WORDS, actions=asked)
    for path in ("/inbox", f"/inbox/{item_id}", f"/inbox/{alone}", f"/inbox/{alone}/cancel", f"/inbox?done={alone}"):
        await reader.goto(f"{server.url}{path}")
        assert await reader.evaluate("window.ran") is None, path
        await expect(reader.get_by_text("⟨U+202E⟩").first).to_be_visible()
        assert "\u202e" not in await reader.evaluate("document.body.innerText")
        assert "\u200b" not in await reader.evaluate("document.body.innerText")
        assert await reader.locator("a[href^='javascript:'], iframe, style, base, main img").count() == 0, path
        hidden = "document.querySelectorAll('[style], [onerror], [onclick]').length"
        assert await reader.evaluate(hidden) == 0
    await reader.goto(f"{server.url}/inbox/{alone}")
    arguments = await reader.locator(".args").first.bounding_box()
    words = await reader.locator(".words").first.bounding_box()
    assert arguments
    assert words
    assert arguments["y"] < words["y"], "our own panel stands above the agent's words"
    links = await reader.locator(".markdown a").evaluate_all("all => all.map(one => one.href)")
    assert links == ["https://evil.example/path", "https://evil.example/x.png"], "the picture is a link, not loaded"
    await expect(reader.locator(".markdown .host").first).to_have_text("(evil.example)")
    await expect(reader.get_by_role("row", name=re.compile("^cmd "))).to_contain_text("<script>window.ran = 1")


async def test_control_the_same_text_as_markup_would_have_run(page: Page) -> None:
    await page.set_content(f"<div id=x></div>{HOSTILE}")
    await page.wait_for_function("window.ran === 1")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_ugly_items_fit_their_window_and_can_be_read(
    server: Server, browser: Browser, scheme: Literal["light", "dark"]
) -> None:
    item_id = ask(server, **UGLY)
    async with await browser.new_context(color_scheme=scheme) as context:
        page = await context.new_page()
        await sign_in(page, server)
        for path in (f"/inbox/{item_id}", "/inbox", f"/inbox/{item_id}/cancel", "/inbox?q=colour:red"):
            await page.goto(f"{server.url}{path}")
            await page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            assert await page.evaluate(CONTRAST) == [], path
            for width in (1280, 390, 320):
                await page.set_viewport_size({"width": width, "height": 800})
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} {width}"
