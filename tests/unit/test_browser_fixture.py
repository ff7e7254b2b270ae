"""The fixtures that give tests a real browser, side by side with other async tests."""

import asyncio

import pytest
from playwright.async_api import Browser, Page


@pytest.mark.parametrize("name", ["one", "two"])
async def test_each_page_starts_without_cookies(page: Page, name: str) -> None:
    await page.set_content(f"<h1>{name}</h1>")
    assert await page.inner_text("h1") == name
    assert await page.context.cookies() == []


async def test_several_browser_contexts_work_at_once(browser: Browser) -> None:
    async def title(name: str) -> str:
        async with await browser.new_context() as context:
            page = await context.new_page()
            await page.set_content(f"<title>{name}</title>")
            return await page.title()

    assert tuple(await asyncio.gather(title("reviewer"), title("admin"))) == ("reviewer", "admin")


def test_own_event_loop_works_beside_the_browser() -> None:
    assert asyncio.run(asyncio.sleep(0, "free")) == "free"
