"""The item page: a heading that can be checked, the call once, and everything around it in one place."""

from json import dumps
from typing import Any

import pytest
from playwright.async_api import Page, expect

from assent.review.model.questions import argument_in_words, headline
from assent.review.model.secrets import MASK
from assent.surfaces.web import titles
from assent.surfaces.web.views import item_page, looks
from tests.api.house import LOOPBACK
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
                "Create event: Standup, Thursday 2026-11-19, 09:00 UTC",
            ),
            ("transfer", {"amount": "12480.5", "currency": "USD", "payee": "Acme"}, "Transfer $12,480.50 to Acme"),
            ("pay_invoice", {"amount": 1.234, "currency": "EUR"}, "Pay €1.234"),
            ("pay_invoice", {"amount": 12, "currency": "XAU"}, "Pay 12 XAU"),
            ("send_email", {"to": "a@b.c", "subject": "Hi", "body": "x"}, "Send email to a@b.c: Hi"),
            ("run_shell", {"command": "ls  -l\n/tmp"}, "Run ls -l /tmp"),
            ("set_limit", {"service": "checkout", "after": 1200}, "Set limit: service checkout, after 1200"),
            ("set_limit", {"amount": 5, "currency": "EUR", "order_id": 7}, "Set limit: €5.00, order 7"),
            ("close_case", {"case": 0}, "Close case 0"),
            ("archiveProject", {"project_id": "p-1", "force": True}, "Archive project p-1: force true"),
            (
                "crm.createTicket",
                {"title": "No light", "name": "x", "level": 2},
                "Crm create ticket: No light, name x, level 2",
            ),
            ("query_SQL", {"query": "a, level 2"}, "Query SQL: “a, level 2”"),
            (
                "write_file",
                {"path": "a.py", "content": "import os\n\nx()"},
                "Write file: path a.py, content import os x()",
            ),
            ("run \u202ecod.exe", {"case": 0}, "run \u202ecod.exe: case 0"),
            ("rotate_key", {"service": "mail", "api_key": MASK}, "Rotate key: service mail"),
            ("ping", {}, "Ping"),
            ("save", {"document": "x" * 5000, "tags": ["a"]}, "Save"),
        ],
    )
    def test_call_is_told_in_a_sentence(self, name: str, args: dict[str, Any], heading: str) -> None:
        assert titles.heading(item({"name": name, "args": args})) == heading

    def test_template_of_the_tool_comes_first(self) -> None:
        schema = {"x-title": "Give {amount} {currency} back for order {order}"}
        told = {"name": "refund_payment", "args": REFUND, "schema": schema}
        assert titles.heading(item(told)) == "Give 249.9 EUR back for order 4711"
        without = {**told, "args": {"order": 4711, "amount": 249.9, "note": "x"}}
        assert titles.heading(item(without)) == "Refund payment: order 4711, 249.9, note x"

    def test_title_of_the_requester_stays(self) -> None:
        assert titles.heading(item({"name": "ping", "args": {}}, title="Check the queue")) == "Check the queue"

    def test_several_calls_are_counted(self) -> None:
        two = item({"name": "refund_payment", "args": REFUND}, {"name": "ping", "args": {}})
        assert titles.heading(two) == "Refund €249.90 to order 4711, and 1 more"


def row(*actions: dict[str, Any], summary: str, **facts: Any) -> dict[str, Any]:
    """As in a list: the start of the arguments, as text."""
    calls = [
        {"name": name, "args_text": headline(dumps(args, separators=(",", ":")), "", 400)}
        for name, args in map(dict.values, actions)
    ]
    return item(*actions) | {"actions": calls, "calls": len(calls), "summary": summary} | facts


class TestLineUnderTheHeading:
    @pytest.mark.parametrize(
        ("name", "args", "line"),
        [
            ("close_case", {"case": 0}, ""),
            ("refund_payment", REFUND, "reason: Broken"),
            ("add_labels", {"issue": 1, "labels": ["1"]}, 'labels: ["1"]'),
            ("close_case", {"case": 0, "note": "a\n\nb, c"}, ""),
            ("create_event", {"name": "Standup", "start": "2026-11-19T09:00:00+00:00", "room": "3"}, "room: 3"),
            ("close_case", {"case": 0, "note": "a\n\nb, c" * 9}, f"note: “{' '.join(('a b, c' * 9).split())}”"),
            ("add_labels", {"issue": 17, "count": 1}, ""),
            ("ping", {}, ""),
        ],
    )
    def test_line_has_what_the_heading_leaves_out(self, name: str, args: dict[str, Any], line: str) -> None:
        said = ", ".join(argument_in_words(*pair) for pair in args.items())
        assert titles.row_summary(row({"name": name, "args": args}, summary=said)) == line

    def test_other_calls_are_told_in_sentences(self) -> None:
        calls = [{"name": name, "args": {"case": n}} for n, name in enumerate(("close_case", "open_case", "ping"))]
        several = row(*calls, summary="case: 0 · case: 1 · case: 2")
        assert titles.row_heading(several) == "Close case 0, and 2 more"
        assert titles.row_summary(several) == "Open case 1 · Ping: case 2"

    def test_description_and_own_title_stay(self) -> None:
        call = {"name": "close_case", "args": {"case": 0}}
        assert titles.row_summary(row(call, summary="The customer agreed.")) == "The customer agreed."
        assert titles.row_summary(row(call, summary="case: 0", title="Close it")) == "case: 0"
        assert titles.row_summary(row(call, summary="Close it", title="Close it")) == ""

    def test_arguments_that_are_cut_off_are_told_as_far_as_they_are_whole(self) -> None:
        mail = {"to": "a@b.c", "subject": "Hi", "body": "x" * 500}
        assert titles.row_heading(row({"name": "send_email", "args": mail}, summary="")) == "Send email to a@b.c: Hi"
        for cut, heading in (
            ('{"case":1…', "Open case"),
            ('{"level":2,"case":1…', "Open case: level 2"),
            ('{"note":"a \\"b\\" c\\u00…', 'Open case: note a "b" c…'),
            ('{"note":"a","case":{"id":1…', "Open case: note a"),
            ('{"no…', "Open case"),
        ):
            call = {"name": "open_case", "args_text": cut}
            assert titles.row_heading({**item({"name": "open_case", "args": {}}), "actions": [call]}) == heading


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


class TestEverywhere:
    async def test_row_counts_all_calls_of_a_long_request(self, desk: Desk) -> None:
        calls = [{"name": "refund_payment", "args": {**REFUND, "order": 5000 + n}} for n in range(25)]
        configs = [{"action_name": "refund_payment", "allowed_decisions": ["approve"]}]
        await desk.raised({"action_requests": calls, "review_configs": configs})
        assert "Refund €249.90 to order 5000, and 24 more" in (await desk.ana.get("/inbox")).text
        [row] = (await desk.agent.get("/api/inbox/items?arguments=true")).json()["items"]
        assert (len(row["actions"]), row["calls"]) == (20, 25)

    async def test_item_is_told_alike_on_every_page(self, desk: Desk, at_once: None) -> None:
        asked = {"name": "rotate", "args": {"service": "billing", "account": 7}}
        configs = [{"action_name": "rotate", "allowed_decisions": ["approve"]}]
        item = await desk.raised({"action_requests": [asked], "review_configs": configs})
        thread = f"/inbox/threads/{item['source']['thread_id']}"
        for path in ("/inbox", "/inbox/threads", thread, f"/inbox/{item['id']}"):
            assert "Rotate: service billing, account 7" in (await desk.ana.get(path)).text, path
        decided = await desk.decide(item["id"], "approve")
        told = (await desk.ana.get(decided.headers["location"])).text
        assert "Approved: Rotate: service billing, account 7" in told

    async def test_bulk_preview_shows_every_argument_of_every_call(self, desk: Desk) -> None:
        calls = [{"key": str(n), "name": "save", "args": {"text": "x" * 300 + f"end-{n}"}} for n in range(7)]
        made = await desk.ask(title="Many", actions=calls)
        chosen = f"{made['id']} {made['revision']} {made['hash']}"
        same_origin = {"origin": LOOPBACK, "sec-fetch-site": "same-origin"}
        page = await desk.ana.post("/inbox/bulk", data={"do": "approval", "chosen": chosen}, headers=same_origin)
        assert [f"end-{n}" in page.text for n in range(7)] == [True] * 7
        assert page.text.count('<details class="call">') == 7, "long ones are folded, with their size"
        assert "<summary>+2 more</summary>" in page.text


class TestNothingTwice:
    def test_caution_quotes_only_what_does_not_stand_below(self) -> None:
        line = "sudo rm -rf /srv"
        told = [{"text": text, "detail": detail} for text, detail in (("a", line), ("b", line), ("c", "x"), ("d", "x"))]
        action = {"args": {"command": line}, "cautions": told}
        assert [caution["detail"] for caution in looks.cautions(action)] == ["", "", "x", ""]
        longer = {"args": {"command": f"{line}\nexit"}, "cautions": told}
        assert [caution["detail"] for caution in looks.cautions(longer)] == [line, "", "x", ""]

    async def test_form_is_asked_once_with_its_titles(self, desk: Desk) -> None:
        schema = {"type": "object", "properties": {"from": {"type": "string", "title": "First day"}}}
        item = await desk.raised({"kind": "form_elicitation", "message": "When?", "schema": schema})
        page = await desk.open(item["id"])
        assert 'First day <code class="quiet">from</code>' in page
        assert "Requested fields" not in page
        assert "Agent’s explanation" not in page
        assert "form_elicitation</code>" not in page
        await desk.decide(item["id"], "decline")
        assert "Requested fields" in await desk.open(item["id"]), "there are no inputs any more"

    async def test_start_of_an_event_is_told_once(self, desk: Desk) -> None:
        args = {"name": "Standup", "start": "2026-11-19T09:00:00+00:00", "end": "2026-11-19T09:15:30+00:00"}
        made = await desk.ask(title="create_event", actions=[{"name": "create_event", "args": args}])
        look = (await desk.open(made["id"])).split('class="look"')[1].split("<details")[0]
        assert "09:00 UTC" in look
        assert args["start"] not in look
        assert args["end"] in look, "the sentence has no seconds"


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


async def test_edit_is_named_in_the_bar_and_moves_no_button(server: Server, page: Page) -> None:
    await sign_in(page, server)
    await page.set_viewport_size({"width": 1360, "height": 860})
    call = {"name": "refund_payment", "args": REFUND, "allowed": ["approve", "edit", "reject", "respond"]}
    await page.goto(f"{server.url}/inbox/{ask(server, title='refund_payment', actions=[call])}")
    await expect(page.locator("#bar .says")).to_contain_text("Refund €249.90 to order 4711")
    before = [await page.locator(f"#bar [data-key={key}]").bounding_box() for key in "ra"]
    await page.locator("summary", has_text="Edit").click()
    await page.get_by_role("textbox", name="amount").fill("49.9")
    await expect(page.locator("#bar .says")).to_contain_text("amount: 249.9 → 49.9")
    await expect(page.locator("#bar .says")).not_to_contain_text("€249.90")
    after = [await page.locator(f"#bar [data-key={key}]").bounding_box() for key in "ra"]
    assert [box and box["y"] for box in after] == [box and box["y"] for box in before]
    assert after[1]
    assert before[1]
    assert after[1]["x"] + after[1]["width"] == before[1]["x"] + before[1]["width"]


async def test_bar_stays_in_view_below_the_banner_of_a_lost_connection(server: Server, page: Page) -> None:
    await sign_in(page, server)
    await page.goto(f"{server.url}/inbox/{ask(server, actions=[{'name': 'save', 'args': {'text': 'x' * 3000}}])}")
    await page.evaluate(
        "document.querySelector('#main').insertAdjacentHTML('beforebegin', '<p class=offline>Offline</p>')"
    )
    await expect(page.get_by_role("button", name="Approve", exact=True)).to_be_in_viewport(ratio=1)


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


async def test_only_the_panes_scroll(server: Server, page: Page) -> None:
    """Playwright hides scrollbars: a classic one of the page and one of its stage stood beside those of the panes."""
    many = [{"key": str(number), "name": "close_case", "args": {"case": number}} for number in range(12)]
    await sign_in(page, server)
    for path in ("/inbox", f"/inbox/{ask(server, title='Long', actions=many)}"):
        await page.goto(f"{server.url}{path}")
        for whole in ("html", ".stage"):
            spills = await page.locator(whole).evaluate("(whole) => whole.scrollHeight - whole.clientHeight")
            assert spills == 0, (path, whole)
