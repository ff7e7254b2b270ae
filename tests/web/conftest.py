"""The whole app without a socket, with a person who is signed in and an agent that asks."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import ConsoleMessage, Page

from assent.settings import Mode
from tests.api.house import LOOPBACK, Builder, House
from tests.cli.command import Server, serving
from tests.missing import missing

GRAPHS = Path(__file__).parent / "graphs" / "langgraph.json"
AXE = Path(__file__).parents[2] / ".tools" / "javascript" / "node_modules" / "axe-core" / "axe.min.js"
_FORM = re.compile(r"<form(?P<head>[^>]*)>(?P<body>.*?)</form>", re.DOTALL)
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')
_PATIENCE = 60.0
BLOCKED = "Service Worker registration blocked by Playwright"  # by our own choice, see tests/browser.py
VIOLATIONS = "document.addEventListener('securitypolicyviolation', e => console.error('CSP', e.violatedDirective))"
DECIDED = timedelta(seconds=6)
"""Longer than a decision from the web can be taken back."""


def hidden(page: str, action: str, holding: str = "") -> dict[str, str]:
    """What the first form with this address sends along by itself; `holding` names something that stands in it."""
    for form in _FORM.finditer(page):
        if f'action="{action}"' in form["head"] and holding in form["body"]:
            return {name: unescape(value) for name, value in _HIDDEN.findall(form["body"])}
    raise AssertionError(f"the page has no form for {action}")


@dataclass(frozen=True)
class Desk:
    """A person's browser, and what agents do meanwhile."""

    house: House
    ana: httpx.AsyncClient
    agent: httpx.AsyncClient

    async def ask(self, **request: Any) -> dict[str, Any]:
        """A request made through the API."""
        asked = {"type": "tool", "title": "Refund order 598"} | request
        made = await self.agent.post("/api/inbox/items", json=asked)
        assert made.status_code == 201, made.text
        return dict(made.json())

    async def raised(self, value: Any) -> dict[str, Any]:
        """The item of a run that asks just this."""
        return await self.pause("ask", {"ask": value})

    async def pause(self, graph: str, given: dict[str, Any], **run: Any) -> dict[str, Any]:
        """The item of a run that stops at a question."""
        thread = (await self.agent.post("/threads", json={})).json()["thread_id"]
        body = {"assistant_id": graph, "input": given, **run}
        paused = await self.agent.post(f"/threads/{thread}/runs/wait", json=body)
        assert paused.status_code == 200, paused.text
        [item] = (await self.agent.get("/api/inbox/items", params={"filter": f"thread:{thread}"})).json()["items"]
        return dict(item)

    async def item(self, item_id: str) -> dict[str, Any]:
        return dict((await self.agent.get(f"/api/inbox/items/{item_id}")).json())

    async def answer(self, item: dict[str, Any]) -> Any:
        """What the run of an item got for an answer, once it has ended."""
        thread_id = item["source"]["thread_id"]
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            thread = (await self.agent.get(f"/threads/{thread_id}")).json()
            if thread["status"] == "idle":
                return thread["values"]["answer"]
            await asyncio.sleep(0.02)
        raise AssertionError("the thread did not come to rest")

    async def change(self, statement: str) -> None:
        """Something that only time or a crash would bring about."""
        await self.house.services.store.write(None, lambda tx: tx.sql(statement))

    async def open(self, item_id: str) -> str:
        page = await self.ana.get(f"/inbox/{item_id}")
        assert page.status_code == 200, page.text
        return page.text

    async def send(self, item_id: str, form: str, *, page: str | None = None, **typed: Any) -> httpx.Response:
        """Fills in a form of the page and sends it, as a browser does: with line ends of its own."""
        shown = page or await self.open(item_id)
        action = f"/inbox/{item_id}/{form}"
        sent = hidden(shown, action) | {
            name: value.replace("\n", "\r\n") if isinstance(value, str) else value for name, value in typed.items()
        }
        return await self.ana.post(action, data=sent, headers={"origin": LOOPBACK, "sec-fetch-site": "same-origin"})

    async def decide(self, item_id: str, verb: str, **typed: Any) -> httpx.Response:
        return await self.send(item_id, "decision", verb=verb, **typed)


@pytest.fixture
def at_once() -> None:
    """Nothing can be taken back at the desk, so that what is decided takes effect without a wait."""


@pytest.fixture
async def desk(request: pytest.FixtureRequest, tmp_path: Path, migrated_file: Path) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        window = "0s" if "at_once" in request.fixturenames else "5s"
        house = await Builder(tmp_path, migrated_file, stack)(Mode.SERVE, config=GRAPHS, undo_window=window)
        yield Desk(house, await house.signed_in("ana"), house.client(await house.key()))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo, so that there is something to see."""
    with serving(tmp_path_factory.mktemp("demo"), "demo", "--port", "0") as running:
        yield running


@pytest.fixture
def link(server: Server) -> str:
    """A fresh sign-in link."""
    key = {"x-api-key": server.said["reviewer key"].split()[0]}
    token = httpx.post(f"{server.url}/api/users/local/login-link", headers=key).json()["token"]
    return f"{server.url}/login#{token}"


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.exists():
        missing("axe-core: make javascript")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture
async def quiet_page(page: Page) -> AsyncIterator[Page]:
    """A page that has nothing to say on its console in the end, violations of its policy included."""
    said: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.text != BLOCKED:
            said.append(message.text)

    page.on("console", listen)
    await page.add_init_script(VIOLATIONS)
    yield page
    assert said == []
