"""A real browser for the tests: Playwright's async API over the Chromium that is installed, one browser per worker.

The sync API is not used: while it is open it counts as a running event loop, and every async test of that worker would
fail.

- `chromium`  path of the browser
- `browser`   a Playwright `Browser`
- `page`      a page in a fresh context; an uncaught error of its scripts fails the test

`python -m tests.browser` prints the path, or fails where there is none; with `--shell`, where it has windows.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect
from playwright.sync_api import sync_playwright

from tests.missing import missing

SHELLS = ("chromium-headless-shell", "chrome-headless-shell")
"""Chromium without windows. A page costs it less than half of the CPU time."""
NAMES = (*SHELLS, "chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
PATIENCE = 60_000
UNUSED_FEATURES = (
    # Pages of the address bar, which every new window loads. They cost half of the CPU time of a test.
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
    # Playwright's own list, which this one replaces.
    *("AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync"),
    *("DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay"),
    *("MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch"),
    *("TcpPortRandomizationWin", "ThirdPartyStoragePartitioning"),
)
expect.set_options(timeout=PATIENCE)  # a busy machine is slow, and that is no failure
FLAGS = (
    f"--disable-features={','.join(UNUSED_FEATURES)}",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def chromium() -> str:
    return find_chromium() or missing("Chromium: apt-get install chromium, or set ASSENT_TEST_CHROMIUM to its path")


@pytest.fixture(scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        _prepare_contexts(browser)
        yield browser
        await browser.close()


def _prepare_contexts(browser: Browser) -> None:
    """Each context is patient, as a busy machine is slow. It has no service workers unless a test asks for them:
    Playwright sees no requests of a page behind one."""
    new_context = browser.new_context

    async def prepared(*, service_workers: str | None = None, **options: Any) -> BrowserContext:
        context = await new_context(**options)
        context.set_default_timeout(PATIENCE)
        if service_workers != "allow":
            await context.add_init_script("delete Navigator.prototype.serviceWorker")
        _end_routes_at_close(context)
        return context

    browser.new_context = prepared  # type: ignore[method-assign]


def _end_routes_at_close(context: BrowserContext) -> None:
    """A handler of a request that is under way then would fail whichever test comes next."""
    close = context.close

    async def close_quietly(**options: Any) -> None:
        await context.unroute_all(behavior="ignoreErrors")
        for page in context.pages:
            await page.unroute_all(behavior="ignoreErrors")
        await close(**options)

    context.close = close_quietly  # type: ignore[method-assign]


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    context = await browser.new_context()
    try:
        page = await context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        assert not errors, f"uncaught errors in the page: {errors}"
    finally:
        with suppress(TimeoutError):  # a page that hangs must not hold up the tests after it
            await asyncio.wait_for(context.close(), 30)


def find_chromium() -> str | None:
    """The browser that is named, on PATH, or Playwright's own."""
    named = os.environ.get("ASSENT_TEST_CHROMIUM")
    on_path = (shutil.which(name) for name in NAMES)
    return named or next(filter(None, on_path), None) or _playwrights_own()


def _playwrights_own() -> str | None:
    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    shells = path.parents[2].glob("chromium_headless_shell-*/*/*headless*shell")
    return next((str(program) for program in (*shells, path) if program.exists()), None)


if __name__ == "__main__":
    chromium_path = find_chromium() or ""
    print(chromium_path or "no Chromium")
    sys.exit("shell" not in chromium_path if sys.argv[1:] == ["--shell"] else not chromium_path)
