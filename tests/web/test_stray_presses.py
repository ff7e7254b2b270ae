"""One press decides one item: presses that were meant for what stood in this place before, or for a dialog above it,
approve nothing."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.cli.command import Server
from tests.web.test_browser import ask, sign_in, stands
from tests.web.test_safety import ready
from tests.web.test_safety_controls import becomes, without

REFUND: list[dict[str, Any]] = [{"name": "refund_payment", "args": {"order": 4711, "amount": 249.9, "currency": "EUR"}}]
SETTLES = 400
"""Milliseconds in which a new item takes no decision."""
WAIT = 'addEventListener(kind, () => busy === "settling" &&'
"""Where the wait starts again."""


@pytest.fixture
async def reader(quiet_page: Page, server: Server) -> Page:
    await sign_in(quiet_page, server)
    return quiet_page


async def opened(page: Page, server: Server, kind: str, number: int = 3) -> list[str]:
    """Some items of one kind in the order of the list, with the first one open."""
    asked = [ask(server, title=f"{kind} {place}", type=kind, actions=REFUND) for place in range(number)][::-1]
    await page.goto(f"{server.url}/inbox/{asked[0]}?q=type:{kind}")
    await ready(page)
    return asked


async def hold_keys(page: Page, *keys: str, times: int = 25) -> None:
    for key in keys[:-1]:
        await page.keyboard.down(key)
    for _ in range(times):  # from the second on these are repeats, as of a key that is held
        await page.keyboard.down(keys[-1])
        await page.wait_for_timeout(40)
    for key in keys[::-1]:
        await page.keyboard.up(key)


def approved(server: Server, items: list[str]) -> list[bool]:
    return [stands(server, item)["status"] == "APPROVED" for item in items]


async def centre(page: Page, name: str) -> tuple[float, float]:
    box = await page.get_by_role("button", name=name).bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def click_often(page: Page, name: str) -> None:
    """Somebody who believes that the first click was not noticed."""
    place = await centre(page, name)
    for _ in range(5):
        await page.mouse.click(*place)
        await page.wait_for_timeout(SETTLES - 120)


async def test_held_key_decides_one_item(server: Server, reader: Page) -> None:
    items = await opened(reader, server, "held_key")
    await hold_keys(reader, "Control", "Enter")
    await expect(reader.get_by_role("status")).to_contain_text("Approved: held_key 2")
    assert approved(server, items) == [True, False, False]


async def test_control_held_key_decides_a_series_where_repeats_count(server: Server, reader: Page) -> None:
    await without(reader, "keys.js", "return event.repeat", instead="&& false")
    await without(reader, "decision.js", WAIT, instead="false &&")
    items = await opened(reader, server, "held_key_control")
    await hold_keys(reader, "Control", "Enter", times=60)
    await becomes(reader, server, items[1], status="APPROVED")


async def test_repeated_clicks_decide_one_item(server: Server, reader: Page) -> None:
    items = await opened(reader, server, "click_often")
    await click_often(reader, "Approve")
    await expect(reader.get_by_role("status")).to_contain_text("Approved: click_often 2")
    assert approved(server, items) == [True, False, False]


async def test_control_repeated_clicks_decide_more_where_the_wait_does_not_start_again(
    server: Server, reader: Page
) -> None:
    await without(reader, "decision.js", WAIT, instead="false &&")
    items = await opened(reader, server, "click_often_control")
    await click_often(reader, "Approve")
    await becomes(reader, server, items[1], status="APPROVED")


async def double_click(page: Page, server: Server, items: list[str]) -> None:
    """A slow double click on Approve: the next item is ready before its second half."""
    place = await centre(page, "Approve")
    await page.mouse.click(*place)
    await expect(page.locator(f"[data-item='{items[1]}']")).to_be_visible()
    await ready(page)
    await page.mouse.down(click_count=2)
    await page.mouse.up(click_count=2)


async def test_double_click_decides_one_item(server: Server, reader: Page) -> None:
    items = await opened(reader, server, "double_click")
    await double_click(reader, server, items)
    await reader.wait_for_timeout(SETTLES)
    assert approved(server, items) == [True, False, False]


async def test_control_double_click_decides_two_where_its_second_half_counts(server: Server, reader: Page) -> None:
    await without(reader, "decision.js", "if (event.detail < 2", instead="|| true")
    items = await opened(reader, server, "double_click_control")
    await double_click(reader, server, items)
    await becomes(reader, server, items[1], status="APPROVED")


async def test_key_held_on_discard_approves_nothing(server: Server, reader: Page) -> None:
    [item] = await opened(reader, server, "discard_held", 1)
    await reader.locator("summary", has_text="Edit").click()
    await reader.get_by_role("textbox", name="amount").fill("49.9")
    await reader.get_by_role("button", name="Discard changes").focus()
    await hold_keys(reader, "Enter")
    await expect(reader.get_by_role("button", name="Discard changes")).to_be_hidden()
    await expect(reader.get_by_role("heading", name="discard_held 0")).to_be_focused()
    assert stands(server, item)["status"] == "PENDING"


async def test_keys_for_a_dialog_do_not_reach_the_item_behind_it(server: Server, reader: Page) -> None:
    items = await opened(reader, server, "behind_dialog", 2)
    await reader.keyboard.press("Control+k")
    await expect(reader.get_by_role("dialog")).to_be_visible()
    await reader.keyboard.type("nothing of this name")
    await reader.keyboard.press("Control+Enter")
    await reader.keyboard.press("Escape")  # empties the field
    await reader.keyboard.press("Escape")
    await expect(reader.get_by_role("dialog")).to_have_count(0)
    await reader.locator(f"tr[data-id='{items[1]}'] [name=chosen]").check()
    await reader.get_by_role("button", name="Approve…").click()
    await expect(reader.get_by_role("heading", name="Approve 1 of 1?")).to_be_focused()
    await reader.keyboard.press("Control+Enter")
    await expect(reader.get_by_role("heading", name="Approve 1 of 1?")).to_be_visible()
    await reader.wait_for_timeout(SETTLES)
    assert approved(server, items) == [False, False]


async def test_control_key_for_a_dialog_approves_the_item_behind_where_dialogs_do_not_count(
    server: Server, reader: Page
) -> None:
    await without(reader, "keys.js", 'const primary = document.querySelector("dialog:modal")', instead="&& false")
    [item] = await opened(reader, server, "behind_dialog_control", 1)
    await reader.keyboard.press("?")
    await reader.locator("#help").press("Control+Enter")
    await becomes(reader, server, item, status="APPROVED")
