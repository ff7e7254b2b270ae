"""The browser-only inbox, in a real browser against LangGraph's own server: the key and the questions stay between the
two, and what is shown is what is answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.async_api import Page, Request, expect

from tests.cli.command import Server
from tests.federation.desk import answered, ask
from tests.missing import missing
from tests.web.conftest import AXE, link, quiet_page, server
from tests.web.test_quality import violations

__all__ = ["link", "quiet_page", "server"]

KEY = "lsv2_secret"
EXACT = 12345678901234567890
ALLOWED = {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True}


def request(action: str = "send_mail", /, description: str = "", **args: Any) -> list[dict[str, Any]]:
    asked = {"action_request": {"action": action, "args": args}, "config": ALLOWED, "description": description}
    return [asked]


@dataclass
class Seat:
    """A signed-in browser, and the requests that it made to other origins."""

    server: Server
    deployment: str
    page: Page
    elsewhere: list[Request]

    async def add(self, graph: str = "asking") -> None:
        await self.page.goto(f"{self.server.url}/inbox/browser")
        await self.page.get_by_label("Assistant/Graph ID").fill(graph)
        await self.page.get_by_label("Deployment URL").fill(self.deployment)
        await self.page.get_by_label("API key").fill(KEY)
        await self.page.get_by_role("button", name="Add Inbox").click()
        await self.page.wait_for_url("**/inbox/browser?origin=**")

    def card(self, title: str) -> Any:
        return self.page.locator(".question").filter(has=self.page.get_by_role("heading", name=title, exact=True))

    async def ask(self, *questions: Any) -> str:
        return await ask(self.deployment, *questions)


@pytest.fixture
async def seat(server: Server, link: str, langgraph_url: str, quiet_page: Page) -> Seat:
    return await seated(server, link, langgraph_url, quiet_page)


async def seated(server: Server, link: str, deployment: str, page: Page) -> Seat:
    elsewhere: list[Request] = []

    def note(sent: Request) -> None:
        if urlsplit(sent.url).netloc != urlsplit(server.url).netloc:
            elsewhere.append(sent)

    page.on("request", note)
    await page.goto(link)
    await page.wait_for_url("**/inbox")
    return Seat(server, deployment, page, elsewhere)


@pytest.mark.promise("INBOX-03", "INBOX-08")
async def test_key_is_kept_in_the_browser_and_sent_to_its_deployment_only(seat: Seat) -> None:
    requests: list[str] = []
    seat.page.on("request", lambda sent: requests.append(f"{sent.url} {sent.headers} {sent.post_data}"))
    await seat.ask("kept?")
    await seat.add()
    await expect(seat.card("kept?")).to_be_visible()
    kept = json.loads(await seat.page.evaluate("localStorage.getItem('assent.inboxes')"))
    assert [(inbox["graph"], inbox["url"], inbox["key"]) for inbox in kept] == [("asking", seat.deployment, KEY)]
    assert {urlsplit(sent.url).netloc for sent in seat.elsewhere} == {urlsplit(seat.deployment).netloc}
    assert any(sent.headers.get("x-api-key") == KEY for sent in seat.elsewhere)
    assert not [request for request in requests if KEY in request and not request.startswith(seat.deployment)]
    await seat.page.get_by_role("button", name="Remove").click()
    await seat.page.wait_for_url("**/inbox/browser")
    assert await seat.page.evaluate("localStorage.getItem('assent.inboxes')") == "[]"


@pytest.mark.promise("INBOX-11", "INBOX-12", "INBOX-13", "INBOX-14", "INBOX-16")
async def test_each_verb_sends_its_exact_answer(seat: Seat) -> None:
    names = ("accepted", "edited", "responded", "ignored")
    threads = {name: await seat.ask(request(name, number=EXACT, price=598.0)) for name in names}
    await seat.add()
    await seat.card("accepted").get_by_role("button", name="Accept").click()
    edited = seat.card("edited")
    text = edited.locator("textarea.code")
    await text.fill((await text.input_value()).replace("598.0", "49.90"))
    await edited.get_by_role("button", name="Send with the changes").click()
    await seat.card("responded").get_by_label("Response", exact=True).fill("not now")
    await seat.card("responded").get_by_role("button", name="Respond").click()
    await seat.card("ignored").get_by_role("button", name="Ignore").click()
    given = {name: (await answered(seat.deployment, thread))[0] for name, thread in threads.items()}
    assert given == {
        "accepted": [{"type": "accept", "args": {"action": "accepted", "args": {"number": EXACT, "price": 598.0}}}],
        "edited": [{"type": "edit", "args": {"action": "edited", "args": {"number": EXACT, "price": 49.90}}}],
        "responded": [{"type": "response", "args": "not now"}],
        "ignored": [{"type": "ignore", "args": None}],
    }


async def test_several_calls_are_decided_one_by_one(seat: Seat) -> None:
    actions = [{"name": name, "args": {"to": name}, "description": ""} for name in ("first", "second")]
    verbs = ["approve", "edit", "reject"]
    reviews = [{"action_name": action["name"], "allowed_decisions": verbs} for action in actions]
    thread = await seat.ask({"action_requests": actions, "review_configs": reviews})
    await seat.add()
    card = seat.card("first, second")
    await card.get_by_label("first").fill('{"to": "third"}')
    for place, verb in enumerate(["approve", "reject"]):
        await card.get_by_label("Decision").nth(place).select_option(verb)
    await card.get_by_role("button", name="Send").click()
    await expect(card.get_by_role("alert")).to_contain_text("Choose Edit")
    await card.get_by_label("Decision").first.select_option("edit")
    await card.get_by_label("Response", exact=True).last.fill("no")
    await card.get_by_role("button", name="Send").click()
    edited = {"type": "edit", "edited_action": {"name": "first", "args": {"to": "third"}}}
    assert await answered(seat.deployment, thread) == [{"decisions": [edited, {"type": "reject", "message": "no"}]}]


async def test_answered_question_keeps_its_place_under_the_pointer(seat: Seat) -> None:
    """Else the next card moves under the pointer, and a second click answers it."""
    for number in (1, 2):
        await seat.ask(request("alike", number=number))
    await seat.add()
    cards, top = seat.card("alike"), "(card) => card.offsetTop"
    await expect(cards).to_have_count(2)
    await expect(seat.page.locator("#state")).to_be_empty()
    place = await cards.nth(1).evaluate(top)
    await cards.first.get_by_role("button", name="Accept").click()
    await expect(cards.first).to_contain_text("Sent.")
    assert await cards.nth(1).evaluate(top) == place
    for _ in range(2):  # the first one may have been asked for before the answer
        await seat.page.wait_for_event("requestfinished", lambda sent: sent.url.endswith("/threads/search"))
    assert await cards.nth(1).evaluate(top) == place
    await seat.page.mouse.move(0, 0)
    await expect(cards).to_have_count(1)


async def test_answer_to_a_changed_question_is_not_sent(seat: Seat) -> None:
    thread = await seat.ask("old?", "new?")
    await seat.add()
    reply = seat.card("old?").get_by_label("Response", exact=True)
    await reply.fill("yes")
    async with httpx.AsyncClient(base_url=seat.deployment) as client:
        run = {"assistant_id": "asking", "command": {"resume": "elsewhere"}}
        (await client.post(f"/threads/{thread}/runs/wait", json=run)).raise_for_status()
    await seat.card("old?").get_by_role("button", name="Respond").click()
    await expect(seat.card("old?").get_by_role("alert")).to_contain_text("Not sent")
    await expect(reply).to_have_value("yes")
    await expect(seat.card("new?")).to_be_visible()


@pytest.mark.promise("P11")
async def test_hostile_text_is_shown_as_text(seat: Seat) -> None:
    markup = "<img src=x onerror=alert(1)>"
    await seat.ask(request("send\u202email", description=markup, note=f"a\u200bb {markup}"))
    await seat.add()
    card = seat.card("send⟨U+202E⟩mail")
    await expect(card.locator("pre")).to_have_text(markup)
    assert "a\\u200bb" in await card.locator("textarea.code").input_value()
    assert await card.locator("img").count() == 0


@pytest.mark.promise("INBOX-24", "INBOX-25")
@pytest.mark.parametrize(("status", "message"), [(401, "refused the key"), (500, "500"), (None, "No answer")])
async def test_deployment_that_does_not_answer_is_not_an_empty_inbox(
    server: Server, link: str, page: Page, status: int | None, message: str
) -> None:
    seat = await seated(server, link, "http://127.0.0.1:9", page)
    if status:
        await page.route(f"{seat.deployment}/**", lambda route: route.fulfill(status=status, body="{}"))
    await seat.add()
    await expect(page.locator("#state")).to_contain_text(message)


async def test_page_may_call_one_origin_only(seat: Seat) -> None:
    opened = seat.page.request
    named = await opened.get(f"{seat.server.url}/inbox/browser?origin={seat.deployment}")
    assert f"connect-src {seat.deployment};" in named.headers["content-security-policy"]
    refused = await opened.get(f"{seat.server.url}/inbox/browser?origin=http://127.0.0.1:9;script-src%20*")
    assert refused.status == 422
    without = await opened.get(f"{seat.server.url}/inbox/browser")
    assert "connect-src 'none';" in without.headers["content-security-policy"]


async def test_page_is_accessible_and_fits_a_phone(seat: Seat) -> None:
    if not AXE.exists():
        missing("axe-core: make javascript")
    await seat.ask(request("fits", text="long " * 200))
    await seat.add()
    await expect(seat.card("fits")).to_be_visible()
    assert await violations(seat.page, AXE.read_text(encoding="utf-8")) == []
    await seat.page.set_viewport_size({"width": 390, "height": 844})
    assert await seat.page.evaluate("document.documentElement.scrollWidth") <= 390
