"""The four ways to answer: each shows what is asked, takes a verb for each order, and says it in its own words."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pytest
from langgraph_sdk.errors import PermissionDeniedError
from playwright.async_api import Locator, Page, expect

from tests.cli.conftest import Assent
from tests.kinds.cases import CITY, WHY, Case, Json, changed
from tests.kinds.office import Office

READABLE = (CITY, "high")
"""What every surface shows of an order, whatever classes it is made of."""


class Surface(Protocol):
    async def answer(self, case: Case, thread: str, items: Sequence[Json]) -> None: ...


def said(case: Case, items: Sequence[Json]) -> Iterator[tuple[Json, list[str]]]:
    """Each item with the verbs for its actions."""
    verbs = iter(case.verbs)
    for item in items:
        yield item, [next(verbs) for _ in item["actions"]]


class Rest:
    def __init__(self, office: Office) -> None:
        self._office = office

    async def answer(self, case: Case, thread: str, items: Sequence[Json]) -> None:
        for item, verbs in said(case, items):
            assert all(word in json.dumps([item["title"], item["actions"]]) for word in READABLE), item
            actions = [_action(action, verb) for action, verb in zip(item["actions"], verbs, strict=True)]
            await self._office.decide(item, actions)


def _action(action: Json, verb: str) -> Json:
    if verb == "edit":
        return {"key": action["key"], "verb": verb, "args": changed(action["args"])}
    if verb in ("reject", "respond"):
        return {"key": action["key"], "verb": verb, "message": WHY}
    if verb in ("approve", "ignore"):
        return {"key": action["key"], "verb": verb}
    return {"key": action["key"], "verb": "respond", "message": verb}


class Sdk:
    """Answers to approvals come from a person's key. The agent answers what approves nothing."""

    def __init__(self, office: Office) -> None:
        self._office = office

    async def answer(self, case: Case, thread: str, items: Sequence[Json]) -> None:
        response: Any = await self._office.agent.threads.get(thread)
        asked = {interrupt["id"]: interrupt["value"] for task in response["interrupts"].values() for interrupt in task}
        assert all(word in json.dumps(value) for value in asked.values() for word in READABLE), asked
        resume = {}
        for item, verbs in said(case, items):
            interrupt_id = item["source"]["interrupt_id"]
            answers = [_resumed(item, action, verb) for action, verb in zip(item["actions"], verbs, strict=True)]
            resume[interrupt_id] = {"decisions": answers} if item["dialect"] == "hitl_request" else answers[0]
        if case.gated:
            with pytest.raises(PermissionDeniedError):
                await self._office.agent.runs.create(thread, case.graph, command={"resume": resume})
        client = self._office.person if case.gated else self._office.agent
        await client.runs.wait(thread, case.graph, command={"resume": resume})


def _resumed(item: Json, action: Json, verb: str) -> Any:
    """The value that the graph waits for."""
    if item["dialect"] == "raw":
        return verb
    if item["dialect"] == "human_interrupt":
        edited = {"action": action["name"], "args": changed(action["args"])} if verb == "edit" else None
        kind = {"approve": "accept", "respond": "response"}.get(verb, verb)
        return [{"type": kind, "args": WHY if verb == "respond" else edited}]
    if verb == "edit":
        return {"type": verb, "edited_action": {"name": action["name"], "args": changed(action["args"])}}
    return {"type": verb, "message": WHY} if verb in ("reject", "respond") else {"type": verb}


class CommandLine:
    def __init__(self, office: Office, assent: Assent) -> None:
        self._assent = assent
        self._server = ("--url", office.url, "--key", office.person_key)

    async def answer(self, case: Case, thread: str, items: Sequence[Json]) -> None:
        for item, verbs in said(case, items):
            shown = await self._inbox("get", item["id"])
            assert all(word in shown for word in READABLE), shown
            if len(verbs) == 1:
                await self._inbox(*_command(verbs[0], item["id"]))
            else:
                await self._inbox("decide", item["id"], *_each(item["actions"], verbs))

    async def _inbox(self, *arguments: str) -> str:
        done = await asyncio.to_thread(self._assent, "inbox", *arguments, *self._server)
        assert done.code == 0, (arguments, done.err)
        return done.out


def _command(verb: str, item_id: str) -> list[str]:
    if verb == "edit":
        return ["edit", item_id, "--set", "order.address.city=Basel"]
    if verb in ("reject", "respond"):
        return [verb, item_id, "--message", WHY]
    return [verb, item_id] if verb in ("approve", "ignore") else ["respond", item_id, "--message", verb]


def _each(actions: Sequence[Json], verbs: Sequence[str]) -> Iterator[str]:
    for number, (action, verb) in enumerate(zip(actions, verbs, strict=True), 1):
        more = {"edit": f":{json.dumps(changed(action['args']))}", "reject": f":{WHY}", "respond": f":{WHY}"}
        yield f"{number}={verb}{more.get(verb, '')}"


class Web:
    def __init__(self, office: Office, page: Page) -> None:
        self._url, self._page = office.url, page

    async def answer(self, case: Case, thread: str, items: Sequence[Json]) -> None:
        for item, verbs in said(case, items):
            await self._page.goto(f"{self._url}/inbox/{item['id']}")
            for word in READABLE:
                await expect(self._page.locator("#detail")).to_contain_text(word)
            if len(verbs) == 1:
                await self._decide(item["actions"][0], verbs[0])
            else:
                await self._choose(item["actions"], verbs)
            await expect(self._page.get_by_role("status").first).to_be_visible()

    async def _decide(self, action: Json, verb: str) -> None:
        if verb == "approve":
            await self._press("Approve")
        elif verb == "edit":
            await self._page.locator("summary", has_text="Edit").click()
            await _fill_order(self._page.locator("#detail"), "a0", action)
            await self._press("Approve with 1 change")
        elif verb == "reject":
            await self._press("Reject…")
            dialog = self._page.get_by_role("dialog", name="Reject")
            await dialog.get_by_role("textbox").fill(WHY)
            await dialog.get_by_role("button", name="Reject", exact=True).click()
        elif verb == "ignore":
            await self._press("Ignore…")
            await self._page.get_by_role("dialog", name="Ignore").get_by_role("button", name="Ignore").click()
        else:
            await self._respond(WHY if verb == "respond" else verb)

    async def _respond(self, text: str) -> None:
        answer = self._page.get_by_role("textbox", name="Your answer")
        if not await answer.is_visible():
            await self._press("Respond…")
        await answer.fill(text)
        await self._press("Send answer")

    async def _choose(self, actions: Sequence[Json], verbs: Sequence[str]) -> None:
        groups = self._page.get_by_role("group", name=re.compile("^Decision for ship"))
        for number, (action, verb) in enumerate(zip(actions, verbs, strict=True)):
            section = self._page.locator(f"[data-action='a{number}.']")
            await groups.nth(number).get_by_label(verb.capitalize(), exact=True).check()
            if verb == "edit":
                await _fill_order(section, f"a{number}", action)
            elif verb in ("reject", "respond"):
                await section.get_by_label("Sent to the agent").fill(WHY)
        await self._page.get_by_role("button", name=re.compile("^(Confirm|Send [0-9])")).click()

    async def _press(self, name: str) -> None:
        await self._page.get_by_role("button", name=name, exact=True).click()


async def _fill_order(place: Locator, prefix: str, action: Json) -> None:
    order = json.dumps(changed(action["args"])["order"])
    await place.locator(f"[name='{prefix}.arg.order']").fill(order)
