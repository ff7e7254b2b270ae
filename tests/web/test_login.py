"""Signing in with a real browser: the printed link, the form, and what the pages look like to a strict policy."""

import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, Page, expect

from tests.api.house import LOOPBACK
from tests.cli.command import Server
from tests.web.conftest import Desk, hidden
from tests.web.contrast import CONTRAST


async def test_the_printed_link_signs_in_and_leaves_no_token_behind(server: Server, quiet_page: Page) -> None:
    requested: list[str] = []
    quiet_page.on("request", lambda request: requested.append(request.url))
    printed = server.said["sign in"]
    await quiet_page.goto(printed)
    await quiet_page.wait_for_url("**/inbox")
    await expect(quiet_page.get_by_role("heading", name="Assent")).to_be_visible()
    await expect(quiet_page.get_by_role("link", name="local", exact=True)).to_be_visible()
    token = printed.partition("#")[2]
    assert not [url for url in requested if token in url]
    assert all(url.startswith(server.url) for url in requested), "nothing comes from elsewhere"
    (cookie,) = await quiet_page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
    assert await quiet_page.evaluate("document.cookie") == ""
    await quiet_page.go_back()
    assert token not in quiet_page.url


async def test_a_link_works_once(link: str, browser: Browser) -> None:
    for number, ends in enumerate((r"/inbox$", r"/login$")):
        async with await browser.new_context() as context:
            page = await context.new_page()
            await page.goto(link)
            if number:
                await expect(page.get_by_role("alert")).to_contain_text("was used or has expired")
            await page.wait_for_url(re.compile(ends))


async def test_a_link_works_where_the_page_is_open_already(server: Server, link: str, quiet_page: Page) -> None:
    """Pasted into the same tab it changes nothing but the fragment, and nothing is loaded anew."""
    await quiet_page.goto(f"{server.url}/login")
    await quiet_page.goto(link)
    await quiet_page.wait_for_url("**/inbox")


async def test_whoever_opens_a_page_is_led_there_after_signing_in(server: Server, link: str, quiet_page: Page) -> None:
    await quiet_page.goto(f"{server.url}/inbox?q=is%3Apending")
    await quiet_page.wait_for_url(re.compile(r"/login\?next=/inbox%3Fq"))
    await quiet_page.get_by_label("Sign-in token or reviewer key").fill(link.partition("#")[2])
    await quiet_page.get_by_role("button", name="Sign in").click()
    await quiet_page.wait_for_url(re.compile(r"/inbox\?q=is%3Apending$"))
    await quiet_page.get_by_role("button", name="Sign out").click()
    await quiet_page.wait_for_url("**/login")
    await quiet_page.goto(f"{server.url}/inbox")
    await quiet_page.wait_for_url(re.compile(r"/login\?next=/inbox$"))


async def test_a_reviewer_key_and_the_keyboard_are_enough(server: Server, quiet_page: Page) -> None:
    await quiet_page.goto(f"{server.url}/login")
    await quiet_page.keyboard.type(server.said["reviewer key"].split()[0])
    await quiet_page.keyboard.press("Enter")
    await quiet_page.wait_for_url("**/inbox")


async def test_without_scripts_the_form_still_works(server: Server, browser: Browser) -> None:
    async with await browser.new_context(java_script_enabled=False) as context:
        page = await context.new_page()
        await page.goto(f"{server.url}/login")
        await page.get_by_label("Sign-in token or reviewer key").fill(server.said["reviewer key"].split()[0])
        await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_url("**/inbox")


async def test_a_wrong_token_is_told_and_can_be_tried_again(server: Server, page: Page) -> None:
    await page.goto(f"{server.url}/login#login_wrong")
    await expect(page.get_by_role("alert")).to_contain_text("was used or has expired")
    await expect(page.get_by_label("Sign-in token or reviewer key")).to_be_focused()
    assert "login_wrong" not in page.url


async def test_a_page_elsewhere_cannot_sign_anyone_out(server: Server, link: str, page: Page, tmp_path: Path) -> None:
    evil = tmp_path / "evil.html"
    evil.write_text(
        f'<form method="post" action="{server.url}/logout"></form><script>document.forms[0].submit()</script>'
    )
    await page.goto(link)
    await page.wait_for_url("**/inbox")
    await page.goto(evil.as_uri())
    await expect(page.get_by_text("origin_refused")).to_be_visible()
    await page.goto(f"{server.url}/inbox")
    await expect(page.get_by_role("link", name="local", exact=True)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_pages_fit_their_window_and_can_be_read(
    server: Server, link: str, browser: Browser, scheme: Literal["light", "dark"]
) -> None:
    async with await browser.new_context(color_scheme=scheme) as context:
        page = await context.new_page()
        await page.goto(link)
        await page.wait_for_url("**/inbox")
        for path in ("/inbox", "/inbox/status", "/login"):
            await page.goto(f"{server.url}{path}")
            assert await page.evaluate(CONTRAST) == [], path
            for width in (1280, 390, 320):
                await page.set_viewport_size({"width": width, "height": 800})
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} {width}"


async def test_a_form_of_an_ended_session_leads_to_sign_in_and_back(desk: Desk) -> None:
    item = await desk.ask()
    page = await desk.open(item["id"])
    await desk.ana.post("/logout", headers={"origin": LOOPBACK, "sec-fetch-site": "same-origin"})
    headers = {"origin": LOOPBACK, "sec-fetch-site": "same-origin", "accept": "text/html"}
    sent = hidden(page, f"/inbox/{item['id']}/decision") | {"verb": "approve"}
    for more in ({}, {"accept": "*/*", "assent-part": "detail"}):
        refused = await desk.ana.post(f"/inbox/{item['id']}/decision", data=sent, headers=headers | more)
        assert (refused.status_code, refused.headers["location"]) == (303, f"/login?next=/inbox/{item['id']}")
    assert (await desk.item(item["id"]))["status"] == "PENDING"
