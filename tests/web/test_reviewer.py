"""A hasty reviewer with nothing but a keyboard: reads the heading, decides, and presses the next key too early."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.cli.command import Server
from tests.scoreboard import Count, RecordScore
from tests.web.test_browser import ask, sign_in, stands

REFUND = {"name": "refund_payment", "args": {"order": 4711, "amount": 249.9, "currency": "EUR"}}
RISKY = {"name": "run_shell", "args": {"command": "sudo rm -rf /srv/tmp"}}
QUESTION = {"name": "ask", "args": {"question": "Which city?"}, "allowed": ["respond"]}
TWO = [{**REFUND, "key": "0"}, {"key": "1", "name": "close_case", "args": {"case": 7}}]
MAIL = {"name": "send_note", "args": {"text": "Hello"}, "allowed": ["approve", "ignore"]}
KINDS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "Approve": ([REFUND], "accepted"),
    "Reject": ([REFUND], "rejected"),
    "Edit": ([REFUND], "edited"),
    "Risky": ([RISKY], "accepted"),
    "Answer": ([QUESTION], "responded"),
    "Both": (TWO, "accepted"),
    "Neither": (TWO, "rejected"),
    "Ignore": ([MAIL], "ignored"),
    "Skip": ([REFUND], ""),
}
"""What is asked, and the resolution that the reviewer means it to have."""


READS = 500
"""Milliseconds in which nobody could read a heading. Keys that come sooner count as typing."""


async def type_keys(page: Page, *keys: str) -> None:
    for key in keys:
        await page.keyboard.press(key)


async def decide(page: Page, kind: str) -> None:
    """The keys of one decision."""
    match kind:
        case "Approve" | "Both":
            await page.keyboard.press("a")
        case "Reject" | "Neither":
            await page.keyboard.press("r")
            await page.keyboard.type("Not a customer, ask again")
            await page.keyboard.press("Control+Enter")
        case "Edit":
            await page.keyboard.press("e")
            for _ in REFUND["args"]:
                if await page.evaluate("document.activeElement.name") != "a0.arg.amount":
                    await page.keyboard.press("Tab")
            await type_keys(page, "Control+a")
            await page.keyboard.type("49.9")
            await type_keys(page, "Control+Enter")
        case "Risky":
            await page.keyboard.press("a")
            await expect(page.locator("[name=sure]")).to_be_focused()
            await type_keys(page, "Space", "Escape", "a")
        case "Answer":
            await page.keyboard.press("a")
            await page.keyboard.type("Lyon, and a return ticket")
            await page.keyboard.press("Control+Enter")
        case "Ignore":
            await page.keyboard.press("r")
            await page.keyboard.type("a z ")
            await type_keys(page, "Control+Enter")
        case "Skip":
            await page.keyboard.press("j")
            await page.keyboard.press("a")


@pytest.mark.scoreboard
@pytest.mark.promise("SAFE-02", "SAFE-03")
@pytest.mark.parametrize("latency", [0, 200, 800])
async def test_hasty_reviewer_decides_nothing_wrong(
    server: Server, page: Page, latency: int, count: Count, record_score: RecordScore
) -> None:
    number = count(full=20, quick=10)
    kinds = [[*KINDS][place % len(KINDS)] for place in range(number)]
    kind = f"reviewer_{latency}"
    asked = [
        (name, ask(server, title=f"{name} {place:02}", type=kind, actions=KINDS[name][0]))
        for place, name in reversed([*enumerate(kinds)])
    ]
    await sign_in(page, server)
    await page.goto(f"{server.url}/inbox/{asked[-1][1]}?q=type:{kind}")

    async def wait(route: Route) -> None:
        await page.wait_for_timeout(latency)
        await route.continue_()

    if latency:
        await page.route(re.compile(r"/inbox/[0-9a-f-]{36}"), wait)
    for _ in kinds:
        await expect(page.locator("#detail:not([inert]) #bar:not([inert])")).to_be_visible()
        await page.wait_for_timeout(READS)
        title = await page.get_by_role("heading", level=2).first.inner_text()
        await decide(page, title.split()[0])
        for _ in range(3):  # impatient: these keys are meant for nothing that is shown
            await page.wait_for_timeout(150)
            await page.keyboard.press("a")
        if title.startswith("Skip"):
            await expect(page.get_by_role("heading", name=title, level=2)).to_have_count(0)
        else:
            await expect(page.get_by_role("status")).to_contain_text(title)
    await page.unroute_all(behavior="ignoreErrors")
    got = {item_id: stands(server, item_id)["resolution"] or "" for _, item_id in asked}
    wrong = [name for name, item_id in asked if got[item_id] != KINDS[name][1]]
    record_score(f"wrong decisions of a keyboard reviewer, {number} items at {latency} ms", "0", len(wrong))
    assert wrong == []
