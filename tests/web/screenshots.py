"""Takes the pictures of the documentation again: `python -m tests.web.screenshots`. Every page, light and dark, on a
laptop and on a phone, and the inbox in Chinese (which needs a font that has Chinese)."""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import httpx
from playwright.async_api import Browser, async_playwright

from tests.browser import FLAGS, find_chromium
from tests.cli.command import Server, serving

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SIZES: dict[str, dict[str, Any]] = {
    "": {"viewport": {"width": 1360, "height": 860}},
    "-phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}
ITEMS = 9
"""As many as the demo asks, beside its sample data."""


def main() -> None:
    os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"  # as in the tests: the process that forks imports LangGraph first
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), "demo", "--port", "0") as server:
        asyncio.run(_take(server))


async def _take(server: Server) -> None:
    pages = await _pages(server)
    async with async_playwright() as playwright:
        chromium = await asyncio.to_thread(find_chromium)
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for scheme in ("light", "dark"):
            for size, look in SIZES.items():
                await _shoot(browser, server, pages, f"-{scheme}{size}", look | {"color_scheme": scheme})
        chinese = {name: pages[name] for name in ("login", "inbox", "item", "event", "thread", "insights", "policies")}
        await _shoot(browser, server, chinese, "-zh", SIZES[""] | {"locale": "zh-CN"})
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
            "login": "/login",
            "inbox": "/inbox",
            "resolved": "/inbox?tab=resolved",
            "item": f"/inbox/{item['id']}",
            "event": f"/inbox/{event['id']}",
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


async def _shoot(browser: Browser, server: Server, pages: dict[str, str], end: str, look: dict[str, Any]) -> None:
    async with await browser.new_context(**look) as context:
        page = await context.new_page()
        for name, path in pages.items():
            if name == "inbox":  # the pages before it are those of nobody
                key = server.said["reviewer key"].split()[0]
                origin = {"origin": server.url}
                await page.request.post(f"{server.url}/api/session", data={"credential": key}, headers=origin)
            await page.goto(f"{server.url}{path}", wait_until="load")
            await page.wait_for_timeout(500)  # until the page settled: the bar is dimmed before
            await page.screenshot(path=IMAGES / f"{name}{end}.png")


if __name__ == "__main__":
    main()
