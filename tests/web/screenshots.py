"""Takes the pictures of the documentation again: `python -m tests.web.screenshots`.

They are those that the READMEs and the pages of docs name: `item-dark-phone` is the page `item` in the dark on a phone,
and `item-zh` in Chinese, for which a font has to be installed."""

import asyncio
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import httpx
from playwright.async_api import Browser, async_playwright

from tests.browser import FLAGS, find_chromium
from tests.cli.command import Server, serving

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
LAPTOP: dict[str, Any] = {"viewport": {"width": 1360, "height": 860}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
LOOKS: dict[str, dict[str, Any]] = {
    "light": LAPTOP | {"color_scheme": "light"},
    "dark": LAPTOP | {"color_scheme": "dark"},
    "light-phone": PHONE | {"color_scheme": "light"},
    "dark-phone": PHONE | {"color_scheme": "dark"},
    "zh": LAPTOP | {"locale": "zh-CN"},
}
ITEMS = 9
"""As many as the demo asks, beside its sample data."""


def main() -> None:
    os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"  # as in the tests: the process that forks imports LangGraph first
    for image in IMAGES.glob("*.png"):
        if image.stem not in named():
            image.unlink()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), "demo", "--port", "0") as server:
        asyncio.run(_take(server))


def named() -> set[str]:
    """The pictures that the documentation shows."""
    texts = (file.read_text(encoding="utf-8") for file in (*ROOT.glob("README*.md"), *(ROOT / "docs").glob("*.md")))
    return {name for text in texts for name in re.findall(r"images/([a-z-]+)\.png", text)}


async def _take(server: Server) -> None:
    pages = await _pages(server)
    async with async_playwright() as playwright:
        chromium = await asyncio.to_thread(find_chromium)
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for look, options in LOOKS.items():
            wanted = {name: f"{name}-{look}" for name in pages if f"{name}-{look}" in named()}
            await _shoot(browser, server, {wanted[name]: pages[name] for name in wanted}, options)
        await browser.close()


async def _pages(server: Server) -> dict[str, str]:
    key = {"x-api-key": server.said["reviewer key"].split()[0]}
    async with httpx.AsyncClient(base_url=server.url, headers=key, trust_env=False) as client:
        listed: list[dict[str, Any]] = []
        while len(listed) < ITEMS:
            listed = (await client.get("/api/inbox/items", params={"filter": "is:pending"})).json()["items"]
        item = next(one for one in listed if one["type"] == "config_change")
        event = next(one for one in listed if one["title"] == "create_event")
        thread = event["source"]["thread_id"]
        return {
            "inbox": "/inbox",
            "resolved": "/inbox?tab=resolved",
            "item": f"/inbox/{item['id']}",
            "event": f"/inbox/{event['id']}",
            "chat": f"/inbox/assistant/{thread}",
            "threads": "/inbox/threads",
            "thread": f"/inbox/threads/{thread}",
            "insights": "/inbox/insights",
            "agents": "/inbox/agents",
            "policies": "/inbox/policies",
            "audit": "/inbox/audit",
            "settings": "/inbox/settings",
            "keys": "/inbox/settings/keys",
            "people": "/inbox/settings/people",
            "notifications": "/inbox/settings/notifications",
            "add-inbox": "/inbox/inboxes/new",
            "help": "/inbox/help",
        }


async def _shoot(browser: Browser, server: Server, pages: dict[str, str], options: dict[str, Any]) -> None:
    async with await browser.new_context(**options) as context:
        page = await context.new_page()
        key, origin = server.said["reviewer key"].split()[0], {"origin": server.url}
        await page.request.post(f"{server.url}/api/session", data={"credential": key}, headers=origin)
        for name, path in pages.items():
            await page.goto(f"{server.url}{path}", wait_until="load")
            await page.wait_for_timeout(500)  # until the page settled: the bar is dimmed before
            await page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
