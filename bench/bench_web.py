"""The web inbox in a real Chromium, as a reviewer feels it: when a page is ready on a slow machine and a slow line, how
long the next item takes after Approve, and how soon a new item is there by itself.

The floor of the long list is our own time with few items; what a person waits for is judged by the clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from statistics import median

from playwright.async_api import Browser, Page, async_playwright

from bench.items import Caller, agent, fill, gated, on_disk, reviewer
from bench.rows import Row, at_most, ratio_at_most
from bench.served import serving
from tests.browser import FLAGS, find_chromium

FEW, MANY = 200, 200_000  # half of them wait
ROUNDS = 9
SLOW_LINE = {"offline": False, "latency": 40, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 0.75e6 / 8}
SLOWER_CPU = 4
ARRIVED = "performance.getEntriesByType('navigation')[0].responseEnd"
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"
NEXT = """async () => {
  const began = performance.now();
  document.querySelector('[data-key="a"]').click();
  const shown = () => document.querySelector('#detail [data-item]')?.dataset.item;
  const before = shown();
  while (shown() === before) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""


@dataclass(frozen=True)
class Place:
    url: str
    key: str
    caller: Caller


def run() -> list[Row]:
    return asyncio.run(_measured())


async def _measured() -> list[Row]:
    chromium = await asyncio.to_thread(find_chromium)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        async with _filled(FEW) as few, _filled(MANY) as many:
            ready = await _ready(browser, few)
            first = await _first_pages(browser, few, many)
            onwards, appears = await _next_item(browser, few), await _new_item(browser, few)
        await browser.close()
    return [
        at_most("inbox ready, CPU 4 × slower, 1.6 Mbit", ready, "ms", target=1000),
        at_most("Approve → next item painted", onwards, "ms", target=100),
        at_most("agent asks → in an open browser", appears, "ms", target=500),
        ratio_at_most(f"first page, {MANY // 2:,} pending / {FEW // 2}", first[1], "ms", peer=first[0], target=2),
    ]


@asynccontextmanager
async def _filled(count: int) -> AsyncIterator[Place]:
    with on_disk() as folder:
        await fill(folder / "assent.db", count)
        key, agents = await reviewer(folder / "assent.db"), await agent(folder / "assent.db")
        with serving(gated, folder) as served, closing(Caller(served.port, agents)) as caller:
            yield Place(f"http://127.0.0.1:{served.port}", key, caller)


@asynccontextmanager
async def _signed_in(browser: Browser, place: Place) -> AsyncIterator[Page]:
    async with await browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = await context.new_page()
        origin = {"origin": place.url}
        signed = await page.request.post(f"{place.url}/api/session", data={"credential": place.key}, headers=origin)
        assert signed.ok, await signed.text()
        yield page


async def _ready(browser: Browser, place: Place) -> float:
    """Everything loaded and run, with nothing in the cache."""
    taken = []
    for _ in range(ROUNDS):
        async with _signed_in(browser, place) as page:
            session = await page.context.new_cdp_session(page)
            await session.send("Network.enable")
            await session.send("Network.emulateNetworkConditions", SLOW_LINE)
            await session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER_CPU})
            await page.goto(f"{place.url}/inbox", wait_until="load")
            taken.append(float(await page.evaluate(LOADED)))
    return median(taken)


async def _first_pages(browser: Browser, *places: Place) -> list[float]:
    """Until the page has arrived, round by round: what is drawn of it is the same for both."""
    taken: list[list[float]] = [[] for _ in places]
    for round in range(ROUNDS + 1):
        for place, times in zip(places, taken, strict=True):
            async with _signed_in(browser, place) as page:
                await page.goto(f"{place.url}/inbox", wait_until="load")
                arrived = float(await page.evaluate(ARRIVED))
                times.extend([arrived] if round else [])
    return [median(times) for times in taken]


async def _next_item(browser: Browser, place: Place) -> float:
    async with _signed_in(browser, place) as page:
        await page.goto(f"{place.url}/inbox")
        await page.locator("#rows .request a").first.click()
        await page.wait_for_selector("#detail [data-item]")
        taken = []
        for _ in range(ROUNDS):
            await page.wait_for_timeout(600)  # a press too soon after an item appeared is not taken for a decision
            taken.append(float(await page.evaluate(NEXT)))
        return median(taken)


async def _new_item(browser: Browser, place: Place) -> float:
    """From before the agent's request is sent until the pill stands there: the request itself is counted in."""
    taken = []
    async with _signed_in(browser, place) as page:
        for number in range(ROUNDS):
            await page.goto(f"{place.url}/inbox?q=type:bench{number}", wait_until="load")
            await page.wait_for_timeout(300)  # until the stream is open
            began = time.perf_counter()
            asked = {"type": f"bench{number}", "title": f"New {number}", "payload": {"n": number}}
            await asyncio.to_thread(place.caller.post, "/api/inbox/items", asked)
            await page.wait_for_selector("#rows tr", state="attached")
            taken.append((time.perf_counter() - began) * 1000)
    return median(taken)
