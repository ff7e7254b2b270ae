"""The screen of `assent inbox triage` against a real server, also one that answers slowly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, Label

from assent.client import AsyncInbox, Item
from assent.surfaces.cli.inbox.triage_screen import Triage
from assent.surfaces.cli.inbox.typing_burst import BURST, TypingBurst
from tests.cli.conftest import Assent
from tests.cli.house import House
from tests.cli.test_client import create
from tests.e2e.conftest import fast_folder
from tests.servers import ServerProcess, dev_server, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(dev_server(f"sqlite:///{fast_folder(tmp_path_factory)}/assent.db")) as started:
        yield started


@pytest.fixture
def house(server: ServerProcess, assent: Assent) -> House:
    return House(server, assent)


class SlowInbox(AsyncInbox):
    """Requests wait while `answers` is cleared."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.answers = asyncio.Event()
        self.answers.set()

    async def get(self, item_id: str) -> Item:
        await self.answers.wait()
        return await super().get(item_id)

    async def decide(self, *arguments: Any, **options: Any) -> Item:
        await self.answers.wait()
        return await super().decide(*arguments, **options)


class Screen:
    """The screen with three items, the newest of which is shown."""

    def __init__(self, inbox: SlowInbox, triage: Triage, pilot: Pilot[None], ids: list[str]) -> None:
        self.inbox, self.triage, self.pilot, self.ids = inbox, triage, pilot, ids

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(90):
            while not condition():
                await self.pilot.pause(0.02)

    async def shows(self, item_id: str | None) -> None:
        await self.until(lambda: self.triage.shows == item_id)

    async def is_ready(self, item_id: str) -> None:
        """The item is shown and no request is under way."""
        await self.until(lambda: self.triage.shows == item_id and not self.triage.is_busy)

    async def says(self, text: str) -> None:
        await self.until(lambda: text in str(self.triage.query_one("#said", Label).content))

    async def opens_line(self, key: str) -> None:
        """Presses the key until it opens the line: right after other keys it counts as text."""
        async with asyncio.timeout(90):
            while not self.triage.query_one(Input).has_class("open"):
                await self.pilot.press(key)
                await self.pilot.pause(BURST)

    def type(self, keys: str) -> None:
        """Keys as a terminal sends them, without a pause."""
        for key in keys:
            self.triage.post_message(Key("space" if key == " " else key, key))

    async def statuses(self) -> list[str]:
        self.inbox.answers.set()
        return [(await self.inbox.get(item_id))["status"] for item_id in self.ids]


@asynccontextmanager
async def screen_of(house: House) -> AsyncIterator[Screen]:
    word = f"Screen{create(house)[-8:]}"
    ids = [create(house, f"{word} {place}") for place in range(3)][::-1]
    async with SlowInbox(house.server.url, house.key) as inbox:
        triage = Triage(inbox, f"is:pending {word}")
        async with triage.run_test(size=(120, 40)) as pilot:
            screen = Screen(inbox, triage, pilot, ids)
            await screen.is_ready(ids[0])
            yield screen


def test_triage_without_a_terminal_is_refused(house: House) -> None:
    refused = house.inbox("triage")
    assert (refused.code, "needs a terminal" in refused.err) == (2, True)


async def test_triage_decides_with_the_keys_of_the_web(house: House) -> None:
    async with screen_of(house) as screen:
        first, second, third = screen.ids
        press = screen.pilot.press
        await press("a")
        await screen.is_ready(second)
        await press("z")
        await screen.is_ready(first)
        assert await screen.statuses() == ["PENDING"] * 3
        await press("j")
        await screen.is_ready(second)
        await screen.opens_line("r")
        await press(*"no", "enter")
        await screen.is_ready(third)
        await screen.opens_line("c")
        await press(*"hm", "enter")
        await screen.says("commented")
        filter = screen.triage.filter
        await screen.opens_line("/")
        await press(*[*("backspace",) * len(filter), *"is:odd"], "enter")
        await screen.says("one of: pending")
        assert screen.triage.filter == filter, "the refused filter does not stay"
        assert [comment["text"] for comment in await screen.inbox.comments(third)] == ["hm"]
        assert await screen.statuses() == ["PENDING", "REJECTED", "PENDING"]
        rejected = await screen.inbox.get(second)
    assert rejected["decisions"][-1]["actions"][0]["message"] == "no"


@pytest.mark.promise("SAFE-02")
async def test_key_decides_nothing_while_the_next_item_loads(house: House) -> None:
    async with screen_of(house) as screen:
        screen.inbox.answers.clear()
        await screen.pilot.press("j")
        await screen.shows(None)
        await screen.pilot.press("a")
        await screen.says("not done")
        assert await screen.statuses() == ["PENDING"] * 3


@pytest.mark.promise("SAFE-03")
async def test_text_typed_while_a_decision_is_sent_decides_nothing(house: House) -> None:
    async with screen_of(house) as screen:
        screen.inbox.answers.clear()
        await screen.pilot.press("a")
        await screen.until(lambda: screen.triage.is_busy)
        screen.type("rnot a customer")
        await screen.says("not done")
        screen.inbox.answers.set()
        await screen.is_ready(screen.ids[1])
        assert await screen.statuses() == ["APPROVED", "PENDING", "PENDING"]


@pytest.mark.promise("SAFE-03")
async def test_text_without_a_line_decides_nothing(house: House) -> None:
    async with screen_of(house) as screen:
        screen.type("not a")
        await screen.says("taken for text")
        assert await screen.statuses() == ["PENDING"] * 3


@pytest.mark.promise("SAFE-03")
async def test_text_that_follows_its_key_at_once_goes_into_the_line(house: House) -> None:
    async with screen_of(house) as screen:
        screen.type("rnot a customer")
        await screen.until(lambda: screen.triage.query_one(Input).value == "not a customer")
        assert await screen.statuses() == ["PENDING"] * 3


@pytest.mark.promise("SAFE-02")
async def test_list_of_keys_covers_the_item_until_escape(house: House) -> None:
    async with screen_of(house) as screen:
        await screen.pilot.press("?")
        await screen.shows(None)
        await screen.pilot.press("a")
        await screen.says("not done")
        await screen.pilot.press("escape")
        await screen.is_ready(screen.ids[0])
        assert await screen.statuses() == ["PENDING"] * 3


def test_keys_are_text_only_if_they_follow_each_other_quickly() -> None:
    burst = TypingBurst()
    burst.key(0)
    assert not burst.typing(0)
    burst.key(BURST * 2)
    assert not burst.typing(BURST * 2)
    burst.key(BURST * 2.5)
    assert burst.typing(BURST * 2.5)
    assert not burst.typing(BURST * 4)
    burst.text(BURST * 5)
    assert burst.typing(BURST * 5.5)
