"""The inbox as an installed app: manifest, icons, and a service worker that keeps no data."""

import pytest
from playwright.async_api import Browser, Error, Page, expect

from tests.cli.command import Server
from tests.web.conftest import Desk
from tests.web.test_browser import ask, sign_in

KEPT = """async () => {
  const caching = (await caches.keys()).map(async (name) => (await caches.open(name)).keys());
  return (await Promise.all(caching)).flat().map((kept) => new URL(kept.url).pathname);
}"""
CONTROLLED = "async () => { await navigator.serviceWorker.ready; return true; }"


async def test_manifest_names_icons_that_exist_and_nothing_is_public(desk: Desk) -> None:
    page = await desk.ana.get("/inbox")
    policy = page.headers["content-security-policy"]
    assert "manifest-src 'self'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    manifest = (await desk.ana.get("/inbox/manifest.webmanifest")).json()
    assert (manifest["start_url"], manifest["scope"], manifest["display"]) == ("/inbox", "/inbox", "standalone")
    assert {"192x192", "512x512"} <= {icon["sizes"] for icon in manifest["icons"]}
    assert {"any", "maskable"} == {icon["purpose"] for icon in manifest["icons"]}
    for icon in manifest["icons"]:
        picture = await desk.ana.get(icon["src"])
        assert (picture.status_code, picture.headers["content-type"].split(";")[0]) == (200, icon["type"])
        if icon["type"] == "image/png":
            width, height = (int.from_bytes(picture.content[at : at + 4]) for at in (16, 20))
            assert f"{width}x{height}" == icon["sizes"]
    worker = await desk.ana.get("/inbox/worker.js")
    assert worker.headers["service-worker-allowed"] == "/inbox"
    for path in ("manifest.webmanifest", "worker.js", "offline"):
        assert (await desk.house.client().get(f"/inbox/{path}")).status_code == 401


async def test_offline_page_is_honest_and_no_item_is_kept(server: Server, browser: Browser) -> None:
    item_id = ask(server, title="Not for the cache")
    async with await browser.new_context(service_workers="allow") as context:
        page = await context.new_page()
        await sign_in(page, server)
        await page.goto(f"{server.url}/inbox")
        assert await page.evaluate(CONTROLLED)
        await page.goto(f"{server.url}/inbox/{item_id}")
        await page.reload()
        await expect(page.get_by_role("heading", name="Not for the cache")).to_be_visible()
        kept = await page.evaluate(KEPT)
        assert "/inbox/offline" in kept
        assert any(path.endswith("/inbox.js") for path in kept)
        assert [path for path in kept if not path.startswith("/static/") and path != "/inbox/offline"] == []
        await context.set_offline(True)
        await page.goto(f"{server.url}/inbox/{item_id}")
        await expect(page.get_by_role("heading", name="The server cannot be reached")).to_be_visible()
        await expect(page.locator("body")).not_to_contain_text("Not for the cache")
        await context.set_offline(False)
        await page.get_by_role("link", name="Try again").click()
        await expect(page.locator("#rows tr").first).to_be_visible()


async def test_control_without_the_worker_the_browser_shows_its_own_error(server: Server, page: Page) -> None:
    await sign_in(page, server)
    await page.goto(f"{server.url}/inbox")
    await page.context.set_offline(True)
    with pytest.raises(Error, match="ERR_INTERNET_DISCONNECTED"):
        await page.goto(f"{server.url}/inbox")
