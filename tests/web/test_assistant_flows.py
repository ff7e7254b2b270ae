"""The five flows of the assistant, decided on the page: the same questions as by curl, and the same events."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.assistant.events import AFTER_EACH_FLOW, events_in
from tests.cli.command import PATIENCE, Server, serving
from tests.waiting import wait_until

REASON = re.compile("sent to the agent", re.IGNORECASE)


class Person:
    """Someone who asks the assistant for things, and decides on the page what it wants."""

    def __init__(self, page: Page, server: Server, http: httpx.Client) -> None:
        self.page, self.server, self._http = page, server, http
        self._key = {"x-api-key": server.said["reviewer key"].split()[0]}
        self._thread = ""
        self._seen: set[str] = set()

    async def sign_in(self) -> None:
        await self.page.goto(f"{self.server.url}/login")
        await self.page.get_by_label("Sign-in token or reviewer key").fill(self._key["x-api-key"])
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.wait_for_url("**/inbox")

    def say(self, name: str, text: str) -> None:
        asked = self._http.post("/run", json={"thread_id": name, "user_request": text})
        assert asked.status_code == 202, asked.text
        self._thread = asked.headers["content-location"].rpartition("/")[2]

    async def answer(self, text: str) -> None:
        await self._open()
        await self.page.get_by_role("textbox", name="Your answer").fill(text)
        await self.page.get_by_role("button", name="Send answer").click()

    async def approve(self) -> None:
        await self._open()
        await self.page.get_by_role("button", name="Approve", exact=True).click()

    async def reject(self, reason: str) -> None:
        await self._open()
        await self.page.get_by_role("button", name=re.compile("^Reject")).click()
        await self.page.get_by_role("textbox", name=REASON).fill(reason)
        await self.page.get_by_role("button", name=re.compile("^Reject$")).click()

    async def approve_first_reject_second(self, reason: str) -> None:
        await self._open()
        first, second = (self.page.locator(f"[data-action='a{place}.']") for place in (0, 1))
        await first.get_by_role("radio", name="Approve").check()
        await second.get_by_role("radio", name="Reject").check()
        await second.get_by_role("textbox", name="Sent to the agent").fill(reason)
        await self.page.get_by_role("button", name="Confirm").click()

    async def settled(self) -> None:
        await expect(self.page.get_by_role("status").first).to_be_visible()
        wait_until(lambda: self._get(f"/threads/{self._thread}")["status"] == "idle", "it does not come to rest")

    async def _open(self) -> None:
        """The next question of the thread, found on the page."""
        found: list[dict[str, Any]] = []

        def is_asked() -> bool:
            listed = self._get("/api/inbox/items", filter=f"is:pending thread:{self._thread}")["items"]
            found[:] = [item for item in listed if item["id"] not in self._seen]
            return bool(found)

        wait_until(is_asked, "nothing more is asked")
        [item] = found
        self._seen.add(item["id"])
        await self.page.goto(f"{self.server.url}/inbox/{item['id']}")

    def _get(self, path: str, **query: str) -> dict[str, Any]:
        found: dict[str, Any] = self._http.get(path, params=query, headers=self._key).json()
        return found


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Server]:
    """Where nothing is taken back, so that what is decided takes effect without a wait."""
    with serving(tmp_path, "demo", "--port", "0", changes={"ASSENT_UNDO_WINDOW": "0s"}) as server:
        yield server


@pytest.fixture
async def ana(demo: Server, page: Page) -> AsyncIterator[Person]:
    with httpx.Client(base_url=demo.url, trust_env=False, timeout=PATIENCE) as http:
        person = Person(page, demo, http)
        await person.sign_in()
        yield person


@pytest.mark.promise("ASST-32", "ASST-33", "ASST-34", "ASST-35", "ASST-25")
async def test_the_five_flows(ana: Person, tmp_path: Path) -> None:
    calendar = tmp_path / ".assent" / "calendar.db"
    ana.say("one", "schedule something")
    await ana.answer("a meeting tomorrow at 3pm")
    await ana.approve()
    await ana.settled()
    assert events_in(calendar) == AFTER_EACH_FLOW[0]

    ana.say("two", "create a meeting called Standup tomorrow at 9am")
    await ana.approve()
    await ana.settled()
    assert events_in(calendar) == AFTER_EACH_FLOW[1]

    ana.say("three", "create an event called Dentist tomorrow at 9am")
    await ana.reject("Wrong time, should be 10am")
    await ana.approve()
    await ana.settled()
    assert events_in(calendar) == AFTER_EACH_FLOW[2]

    ana.say("four", "create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm")
    await ana.approve_first_reject_second("I eat alone")
    await ana.settled()
    assert events_in(calendar) == AFTER_EACH_FLOW[3]

    ana.say("five", "schedule something for me, and move the meeting at 3pm to 4pm")
    await ana.answer("a call with Ana tomorrow at 5pm")
    await ana.approve()
    await ana.approve()
    await ana.settled()
    assert events_in(calendar) == AFTER_EACH_FLOW[4]
