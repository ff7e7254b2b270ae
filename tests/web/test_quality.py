"""Every page: nothing that axe minds, nothing on the console, nothing from elsewhere, and little to load."""

import gzip
import json
from pathlib import Path
from typing import Literal

import httpx
import pytest
from playwright.async_api import Browser, Page

import assent.assistant.web
import assent.surfaces.web
from tests.cli.command import Server
from tests.web.test_browser import UGLY, ask, sign_in

PAGES = (
    "/inbox",
    "/inbox?tab=resolved",
    "/inbox?q=nothing-like-this",
    "/inbox/help",
    "/inbox/threads",
    "/inbox/agents",
    "/inbox/crons",
    "/inbox/insights",
    "/inbox/policies",
    "/inbox/audit",
    "/inbox/settings",
    "/inbox/settings/account",
    "/inbox/settings/reasons",
    "/inbox/inboxes/new",
    "/inbox/assistant",
)
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
RUN = """async (rules) => {
  const told = (node) => `${node.target.join(' ')} ${node.any[0]?.message ?? ''}`;
  const { violations } = await axe.run(document, { resultTypes: ['violations'], ...rules });
  return violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map(told).join(' | ')}`);
}"""
TITLES = """() => {
  const titles = document.querySelectorAll("main h1, main.column > h2, main > header > h2");
  return [...titles].map((one) => getComputedStyle(one).fontSize);
}"""
CHAT = Path(assent.assistant.web.__file__).parent
STATIC = Path(assent.surfaces.web.__file__).parent / "static"


async def violations(page: Page, axe: str, scheme: Literal["light", "dark"] = "light") -> list[str]:
    """In the dark, only the colours are others."""
    await page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    await page.evaluate(axe)
    return list(await page.evaluate(RUN, {"runOnly": COLOUR_RULES} if scheme == "dark" else {}))


def items(server: Server) -> list[str]:
    """One of every kind that the demo has, an ugly one, and one that is decided."""
    key = {"x-api-key": server.said["agent key"].split()[0]}
    listed = httpx.get(f"{server.url}/api/inbox/items?limit=20", headers=key, trust_env=False, timeout=30).json()[
        "items"
    ]
    kinds = {one["type"]: one["id"] for one in listed}
    return [*kinds.values(), ask(server, **UGLY)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing(server: Server, browser: Browser, axe: str, scheme: Literal["light", "dark"]) -> None:
    async with await browser.new_context(color_scheme=scheme) as context:
        page = await context.new_page()
        await page.goto(f"{server.url}/login")
        found = {"/login": await violations(page, axe, scheme)}
        await sign_in(page, server)
        for path in (*PAGES, *(f"/inbox/{one}" for one in items(server))):
            await page.goto(f"{server.url}{path}")
            found[path] = await violations(page, axe, scheme)
    assert {path: told for path, told in found.items() if told} == {}


async def test_control_axe_finds_what_is_wrong(page: Page, axe: str) -> None:
    await page.set_content('<html><body><img src="x.png"><button></button></body></html>')
    assert {one.partition(":")[0] for one in await violations(page, axe)} >= {"image-alt", "button-name"}


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_quiet_and_fits_a_phone(server: Server, quiet_page: Page, path: str) -> None:
    requested: list[str] = []
    quiet_page.on("request", lambda request: requested.append(request.url))
    await sign_in(quiet_page, server)
    await quiet_page.goto("about:blank")
    requested.clear()
    await quiet_page.goto(f"{server.url}{path}", wait_until="load")
    assert [url for url in requested if not url.startswith(server.url)] == []
    assert len(requested) <= 8, requested
    sizes = await quiet_page.evaluate(TITLES)
    assert set(sizes) <= {"20px"}, "titles of pages have one size"
    for width in (1280, 390, 320):
        await quiet_page.set_viewport_size({"width": width, "height": 800})
        assert await quiet_page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def test_scripts_and_styles_stay_small() -> None:
    sizes = {
        file.name: len(gzip.compress(file.read_bytes()))
        for folder in (STATIC, CHAT / "static")
        for file in folder.iterdir()
    }
    assert sum(size for name, size in sizes.items() if name.endswith(".js")) <= 30 * 1024, json.dumps(sizes)
    assert sum(size for name, size in sizes.items() if name.endswith(".css")) <= 12 * 1024, json.dumps(sizes)


def test_nothing_is_inline_and_nothing_comes_from_elsewhere() -> None:
    for file in (*(STATIC.parent / "templates").rglob("*.html"), *(CHAT / "templates").rglob("*.html")):
        text = file.read_text(encoding="utf-8")
        assert " style=" not in text, file.name
        assert " onclick=" not in text, file.name
        assert "<script>" not in text, file.name
        assert 'src="http' not in text, file.name


async def test_assets_are_kept_for_good_and_named_by_their_content(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=30) as client:
        page = (await client.get("/login")).text
        address = page.split('rel="stylesheet" href="')[1].split('"')[0]
        style = await client.get(address, headers={"accept-encoding": "gzip"})
        assert "immutable" in style.headers["cache-control"]
        assert style.headers["content-encoding"] == "gzip"
        older = await client.get("/static/000000000000/assent.css")
        assert (older.status_code, older.headers["cache-control"]) == (200, "no-cache")
        assert (await client.get("/static/..%2f..%2fapp.py")).status_code == 404
