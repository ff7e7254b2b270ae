"""The item page: a heading that can be checked, the call once, and everything around it in one place."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from assent.surfaces.web.views import item_page, titles
from tests.cli.command import Server
from tests.web.conftest import Desk
from tests.web.test_browser import ask, sign_in

REFUND = {"order": 4711, "amount": 249.9, "currency": "EUR", "reason": "Broken"}


def item(*actions: dict[str, Any], **facts: Any) -> dict[str, Any]:
    calls = [{"schema": None, "description": None, "cautions": [], **action} for action in actions]
    return {"type": "tool", "title": ", ".join(call["name"] for call in calls), "actions": calls} | facts


class TestHeading:
    @pytest.mark.parametrize(
        ("name", "args", "heading"),
        [
            ("refund_payment", REFUND, "Refund €249.90 to order 4711"),
            (
                "create_event",
                {"name": "Standup", "start": "2026-11-19T09:00:00+00:00"},
                "Create event: Standup, Thursday 2026-11-19, 09:00 UTC+00:00",
            ),
            ("transfer", {"amount": "12480.5", "currency": "USD", "payee": "Acme"}, "Transfer $12,480.50 to Acme"),
            ("pay_invoice", {"amount": 1.234, "currency": "EUR"}, "Pay €1.234"),
            ("pay_invoice", {"amount": 12, "currency": "XAU"}, "Pay 12 XAU"),
            ("send_email", {"to": "a@b.c", "subject": "Hi", "body": "x"}, "Send email to a@b.c: Hi"),
            ("run_shell", {"command": "ls  -l\n/tmp"}, "Run ls -l /tmp"),
            ("set_limit", {"service": "checkout", "after": 1200}, "set_limit: service checkout, after 1200"),
            ("set_limit", {"amount": 5, "currency": "EUR", "order_id": 7}, "set_limit: 5 EUR, order 7"),
            ("ping", {}, "ping"),
            ("save", {"document": "x" * 5000, "tags": ["a"]}, "save"),
        ],
    )
    def test_call_is_told_in_a_sentence(self, name: str, args: dict[str, Any], heading: str) -> None:
        assert titles.heading(item({"name": name, "args": args})) == heading

    def test_template_of_the_tool_comes_first(self) -> None:
        schema = {"x-title": "Give {amount} {currency} back for order {order}"}
        told = {"name": "refund_payment", "args": REFUND, "schema": schema}
        assert titles.heading(item(told)) == "Give 249.9 EUR back for order 4711"
        without = {**told, "args": {"order": 4711, "amount": 249.9, "note": "x"}}
        assert titles.heading(item(without)) == "refund_payment: order 4711, 249.9, note x"

    def test_title_of_the_requester_stays(self) -> None:
        assert titles.heading(item({"name": "ping", "args": {}}, title="Check the queue")) == "Check the queue"

    def test_several_calls_are_counted(self) -> None:
        two = item({"name": "refund_payment", "args": REFUND}, {"name": "ping", "args": {}})
        assert titles.heading(two) == "Refund €249.90 to order 4711, and 1 more"


class TestExplanation:
    @pytest.mark.parametrize(
        ("description", "left"),
        [
            ("Tool execution requires approval\n\nTool: ping\nArgs: {'a': 1}", None),
            ("Please look at this\n\nTool: ping\nArgs: {'a': 1}", "Please look at this"),
            ("Tool execution requires approval\n\nTool: other\nArgs: {'a': 1}", "Tool execution requires approval"),
            ("The customer asked for it.", "The customer asked for it."),
            (None, None),
        ],
    )
    def test_text_that_only_repeats_the_call_is_dropped(self, description: str | None, left: str | None) -> None:
        said = item_page.said_beyond({"name": "ping", "description": description})
        assert said is None if left is None else said is not None and said.startswith(left)


class TestPage:
    async def test_long_values_are_folded_with_their_size(self, desk: Desk) -> None:
        made = await desk.ask(title="Long", actions=[{"name": "save", "args": {"text": "x" * 9000, "short": "y"}}])
        page = await desk.open(made["id"])
        assert '<details class="long"><summary>8.8 KB' in page
        assert page.count('<details class="long">') == 1

    @pytest.mark.promise("REVIEW-10")
    async def test_linked_threads_have_their_titles(self, desk: Desk) -> None:
        thread = (await desk.agent.post("/threads", json={"metadata": {"title": "Order 4711"}})).json()["thread_id"]
        made = await desk.ask(thread_ids=[thread])
        page = await desk.open(made["id"])
        assert "Linked threads" in page
        assert f'<a href="/inbox/threads/{thread}" title="{thread}">Order 4711</a>' in page

    @pytest.mark.promise("REVIEW-19")
    async def test_resubmit_stands_exactly_where_the_api_allows_it(self, desk: Desk) -> None:
        made = await desk.ask(actions=[{"name": "ping", "args": {"a": 1}}])
        assert "/resubmission" not in await desk.open(made["id"])
        await desk.send(made["id"], "revision-request", revision_notes="Again")
        assert "resubmit" in (await desk.item(made["id"]))["can"], "for the agent that asked"
        assert "/resubmission" not in await desk.open(made["id"]), "and for nobody else"

    @pytest.mark.promise("INBOX-15")
    async def test_breakpoint_says_where_the_thread_goes(self, desk: Desk) -> None:
        made = await desk.pause("stop", {"ask": "x"})
        page = await desk.open(made["id"])
        assert "Continue to publish" in page
        assert "End thread" in page


@pytest.mark.promise("REVIEW-08")
@pytest.mark.parametrize(("width", "beside"), [(1360, True), (1000, False)])
async def test_sidebar_stands_beside_the_call_where_there_is_room(
    server: Server, page: Page, width: int, beside: bool
) -> None:
    await sign_in(page, server)
    await page.set_viewport_size({"width": width, "height": 860})
    await page.goto(f"{server.url}/inbox/{ask(server, actions=[{'name': 'ping', 'args': {'a': 1}}])}")
    content, aside, activity = [
        await page.locator(selector).bounding_box() for selector in (".content", "aside", "#activity")
    ]
    assert content
    assert aside
    assert activity
    assert (aside["x"] >= content["x"] + content["width"]) is beside
    assert beside or aside["y"] < activity["y"], "above the activity, not below everything"


async def test_sidebar_of_a_thread_stands_beside_the_conversation(server: Server, page: Page) -> None:
    await sign_in(page, server)
    await page.set_viewport_size({"width": 1360, "height": 860})
    await page.goto(f"{server.url}/inbox/threads")
    await page.locator(".thread-rows a").first.click()
    body, aside = [await page.locator(selector).bounding_box() for selector in (".thread .body", "aside.about")]
    assert body
    assert aside
    assert body["width"] > 600
    assert aside["x"] >= body["x"] + body["width"]


async def test_bar_is_in_the_same_place_for_every_item(server: Server, page: Page) -> None:
    await sign_in(page, server)
    places = set()
    for actions in ([{"name": "ping", "args": {"a": 1}}], [{"name": "save", "args": {"text": "x\n" * 300}}]):
        await page.goto(f"{server.url}/inbox/{ask(server, actions=actions)}")
        bar = await page.locator("#bar").bounding_box()
        button = await page.get_by_role("button", name="Approve", exact=True).bounding_box()
        assert bar
        assert button
        places.add((bar["y"] + bar["height"], button["x"] + button["width"], button["y"]))
        await expect(page.locator("#bar")).to_be_in_viewport()
    assert len(places) == 1
