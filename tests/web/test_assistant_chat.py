"""A conversation with the assistant on its page: as plain forms over a graph that asks by script, and in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from html import unescape
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from assent.identity.model.access import Role, operator
from assent.settings import Mode
from tests.api.house import LOOPBACK, Builder, House
from tests.api.talking import GRAPHS
from tests.assistant.events import events_in
from tests.cli.command import Server, serving
from tests.waiting import until, wait_until
from tests.web.conftest import hidden
from tests.web.test_browser import sign_in
from tests.web.test_quality import violations

PATH = "/inbox/assistant"
OURS = {"origin": LOOPBACK, "sec-fetch-site": "same-origin"}
_ACTION = re.compile(r'<form method="post" action="([^"]+)" id="decision"')


class Visitor:
    """A person's browser without scripts, in one conversation."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.address = ""
        self.page = ""

    async def ask(self, text: str, *, ends: bool = True) -> str:
        form = f"{self.address}/message" if self.address else PATH
        return await self._post(form, {"text": text}, ends=ends)

    async def decide(self, **typed: Any) -> str:
        found = _ACTION.search(self.page)
        assert found, self.page
        return await self._post(
            found[1], hidden(self.page, found[1]) | {n.replace("__", "."): v for n, v in typed.items()}
        )

    async def press(self, name: str) -> str:
        return await self._post(f"{self.address}/{name}", {})

    async def look(self) -> str:
        return await self._shown(await self.http.get(self.address))

    async def _post(self, path: str, data: dict[str, Any], *, ends: bool = True) -> str:
        """The page once the assistant has ended its work: on a busy machine, the first one is of a run at work."""
        sent = await self.http.post(path, data=data, headers=OURS)
        if sent.status_code == 303:
            self.address = sent.headers["location"]
            sent = await self.http.get(self.address)
        await self._shown(sent)
        if ends and "data-run" in self.page:
            await until(self._rests)
        return self.page

    async def _rests(self) -> bool:
        return "data-run" not in await self.look()

    async def _shown(self, response: httpx.Response) -> str:
        self.page = unescape(response.text)
        return self.page


async def _pending_items(visitor: Visitor) -> list[dict[str, Any]]:
    listed = (await visitor.http.get("/api/inbox/items", params={"filter": "is:pending"})).json()["items"]
    return [(await visitor.http.get(f"/api/inbox/items/{item['id']}")).json() for item in listed]


async def _pending(visitor: Visitor) -> str:
    """The id of the only pending item."""
    [item] = await _pending_items(visitor)
    return str(item["id"])


async def _answer(visitor: Visitor, item: dict[str, Any], **more: Any) -> None:
    """As in the inbox, which leaves time to undo."""
    said = [{"key": action["key"], "verb": "respond", "message": "fine"} for action in item["actions"]]
    body = {"revision": item["revision"], "hash": item["hash"], "actions": said, **more}
    decided = await visitor.http.post(f"/api/inbox/items/{item['id']}/decision", json=body, headers=OURS)
    assert decided.status_code == 200, decided.text


@pytest.fixture(scope="module")
async def building(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        builder = Builder(tmp_path_factory.mktemp("chat"), migrated_file, stack)
        yield await builder(Mode.SERVE, config=GRAPHS, assistant="scripted")


@pytest.fixture
async def house(building: House) -> House:
    await building.sweep()
    return building


@pytest.fixture
async def ana(house: House) -> Visitor:
    return Visitor(await house.signed_in("ana"))


class TestForms:
    async def test_answer_of_the_assistant_is_shown(self, ana: Visitor) -> None:
        page = await ana.ask("nothing")
        assert ">nothing<" in page
        assert "Done: nothing." in page
        assert f'action="{ana.address}/message"' in page
        listed = (await ana.http.get(PATH)).text
        assert ana.address in listed

    async def test_questions_are_answered_on_the_page(self, ana: Visitor) -> None:
        page = await ana.ask("ask")
        assert "When?" in page
        assert "Where?" in page
        page = await ana.decide(a0__message="tomorrow", a1__message="here", a0__verb="respond", a1__verb="respond")
        assert "Done: tomorrow; here." in page

    async def test_of_two_calls_one_is_approved(self, ana: Visitor) -> None:
        await ana.ask("confirm")
        page = await ana.decide(a0__verb="approve", a1__verb="reject", a1__message="I eat alone")
        assert "'name': 'Standup'" in page
        assert "not done: I eat alone" in page

    async def test_rejection_without_a_reason_is_refused_and_keeps_the_choices(self, ana: Visitor) -> None:
        await ana.ask("confirm")
        page = await ana.decide(a0__verb="approve", a1__verb="reject")
        assert 'role="alert"' in page
        assert page.count(" checked>") == 2
        assert "Done:" not in page

    async def test_link_is_followed_and_confirmed(self, ana: Visitor) -> None:
        page = await ana.ask("login")
        assert 'href="https://accounts.example.com:8443/connect?state=1"' in page
        assert "Done: {'action': 'accept'}" in await ana.decide(verb="accept")

    async def test_form_is_filled_in(self, ana: Visitor) -> None:
        await ana.ask("form")
        page = await ana.decide(verb="accept", a0__form__room='"blue"', a0__form__people="0")
        assert 'role="alert"' in page
        page = await ana.decide(verb="accept", a0__form__room='"blue"', a0__form__people="3")
        assert "'people': 3" in page

    @pytest.mark.parametrize(
        ("language", "words"), [("en", "Takes effect at once, without undo."), ("zh-CN", "立即生效，无法撤回。")]
    )
    async def test_card_says_that_its_decision_has_no_undo(self, ana: Visitor, language: str, words: str) -> None:
        ana.http.headers["accept-language"] = language
        assert words in await ana.ask("confirm")
        item_id = await _pending(ana)
        await ana.decide(a0__verb="approve", a1__verb="approve")
        decided = (await ana.http.get(f"/api/inbox/items/{item_id}")).json()
        assert (decided["status"], "undo" in decided["can"]) == ("APPROVED", False)

    async def test_other_question_is_answered_here_and_linked(self, ana: Visitor) -> None:
        await ana.ask("odd")
        assert f'<a href="/inbox/{await _pending(ana)}">Change it, or decide it in the inbox</a>' in ana.page
        assert "Done: a lot." in await ana.decide(a0__message="a lot", verb="respond")

    async def test_question_that_others_decide_leads_to_the_inbox(self, ana: Visitor, house: House) -> None:
        rule = {"name": "of others", "tool": "*", "then": "ask", "by": {"people": ["bob"]}}
        await house.services.policies.put(operator(), {"rules": [rule]})
        await ana.ask("confirm")
        assert f'<a href="/inbox/{await _pending(ana)}">Open in the inbox</a>' in ana.page
        assert "You cannot decide this." in ana.page
        assert not _ACTION.search(ana.page)

    async def test_answer_to_an_older_revision_is_refused(self, ana: Visitor, house: House) -> None:
        await ana.ask("confirm")
        old = ana.page
        item_id = await _pending(ana)
        await ana.decide(a0__verb="approve", a1__verb="approve")
        ana.page = old
        page = await ana.decide(a0__verb="approve", a1__verb="approve", key="another")
        assert 'role="alert"' in page
        decisions = (await ana.http.get(f"/api/inbox/items/{item_id}")).json()["decisions"]
        assert len(decisions) == 1

    async def test_running_request_can_be_stopped(self, ana: Visitor, tmp_path: Path) -> None:
        page = await ana.ask(f"slow:{tmp_path / 'never'}", ends=False)
        assert 'http-equiv="refresh"' in page
        assert f'action="{ana.address}/cancel"' in page

        async def is_free() -> bool:
            return "/message" in await ana.look()

        await ana.press("cancel")
        await until(is_free)
        assert "Done: nothing." in await ana.ask("nothing")

    @pytest.mark.parametrize("last", [0, 1])
    async def test_answer_on_its_way_is_work_whichever_question_it_answers(self, ana: Visitor, last: int) -> None:
        await ana.ask("both")
        asked = await _pending_items(ana)
        assert len(asked) == 2
        await _answer(ana, asked[1 - last])

        async def is_done() -> bool:
            shown = (await ana.http.get(f"/api/inbox/items/{asked[1 - last]['id']}")).json()
            return shown["delivery"]["status"] == "delivered" and "data-run" not in await ana.look()

        await until(is_done)
        await _answer(ana, asked[last], grace_seconds=60)
        assert "data-run" in await ana.look()
        assert "/message" not in ana.page

    async def test_failure_is_named_without_its_details_and_can_be_retried(self, ana: Visitor) -> None:
        page = await ana.ask("fail")
        assert "sk-do-not-tell" not in page
        assert f'action="{ana.address}/retry"' in page
        assert f'action="{ana.address}/retry"' in await ana.press("retry")

    async def test_script_gets_the_page_and_the_words_of_the_assistant(self, ana: Visitor, tmp_path: Path) -> None:
        (tmp_path / "gate").touch()
        await ana.ask("nothing")
        data, headers = {"text": f"speak:{tmp_path / 'gate'}"}, {**OURS, "assent-part": "talk"}
        said = (await ana.http.post(f"{ana.address}/message", data=data, headers=headers)).text.split("\n\n")
        assert said[0].startswith("event: page\n")
        assert f"{ana.address}/cancel" in said[0]
        words = "".join(json.loads(event.partition("data: ")[2])["text"] for event in said if "event: words" in event)
        assert words.startswith("Well,\nthen let us")
        assert said[-2] == "event: done\ndata: null"
        assert (await ana.http.get(f"{ana.address}/words")).text == "event: done\ndata: null\n\n"

    async def test_lines_of_a_request_end_as_the_person_typed_them(self, ana: Visitor) -> None:
        page = await ana.ask("say one\r\ntwo\r\n")
        assert "U+000D" not in page
        assert "say one\ntwo</pre>" in page

    async def test_empty_request_is_refused(self, ana: Visitor) -> None:
        assert 'role="alert"' in await ana.ask("  ")
        assert ana.address == ""


class TestSafety:
    async def test_item_of_another_thread_is_not_decided_here(self, ana: Visitor) -> None:
        await ana.ask("confirm")
        form = _ACTION.search(ana.page)
        assert form
        other = Visitor(ana.http)
        await other.ask("nothing")
        path = form[1].replace(ana.address, other.address)
        sent = hidden(ana.page, form[1]) | {"a0.verb": "approve", "a1.verb": "approve"}
        assert (await ana.http.post(path, data=sent, headers=OURS)).status_code == 404
        assert "Done:" not in await ana.look()

    async def test_form_from_another_site_is_refused(self, ana: Visitor) -> None:
        headers = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
        assert (await ana.http.post(PATH, data={"text": "confirm"}, headers=headers)).status_code == 403

    async def test_page_has_the_strict_policy(self, ana: Visitor) -> None:
        for address in (PATH, ana.address or PATH):
            policy = (await ana.http.get(address)).headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy

    async def test_thread_of_another_graph_is_not_shown(self, ana: Visitor) -> None:
        made = await ana.http.post("/threads", json={"metadata": {"graph_id": "other"}}, headers=OURS)
        assert (await ana.http.get(f"{PATH}/{made.json()['thread_id']}")).status_code == 404

    async def test_person_without_the_right_is_told_so(self, house: House) -> None:
        viewer = await house.signed_in("vera", Role.VIEWER)
        assert (await viewer.get(PATH)).status_code == 403
        assert (await viewer.post(PATH, data={"text": "nothing"}, headers=OURS)).status_code == 403

    async def test_conversations_of_others_are_not_listed(self, ana: Visitor, house: House) -> None:
        await ana.ask("nothing")
        bob = await house.signed_in("bob")
        assert ana.address not in (await bob.get(PATH)).text

    async def test_conversations_of_a_person_are_listed_however_many_others_are_newer(
        self, ana: Visitor, house: House
    ) -> None:
        await ana.ask("say  hello\nto everyone")
        bob = await house.signed_in("bob")
        for _ in range(26):
            made = await bob.post("/threads", json={"metadata": {"graph_id": "scripted"}}, headers=OURS)
            assert made.status_code == 200, made.text
        assert "<strong>say hello to everyone</strong>" in (await ana.http.get(PATH)).text
        thread = (await ana.http.get(f"/threads/{ana.address.rpartition('/')[2]}")).json()
        assert thread["metadata"]["title"] == "say hello to everyone"

    async def test_conversation_without_a_stored_title_is_listed_by_its_first_request(self, ana: Visitor) -> None:
        made = await ana.http.post("/threads", json={"metadata": {"graph_id": "scripted"}}, headers=OURS)
        ana.address = f"{PATH}/{made.json()['thread_id']}"
        await ana.ask("say hello")
        assert "<strong>say hello</strong>" in (await ana.http.get(PATH)).text

    async def test_hostile_request_is_text(self, ana: Visitor) -> None:
        await ana.ask("<script>window.ran=1</script>")
        assert "&lt;script&gt;" in (await ana.http.get(ana.address)).text


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path, "demo", "--port", "0") as server:
        yield server


class TestBrowser:
    @pytest.mark.promise("ASST-25", "ASST-34")
    async def test_conversation_asks_proposes_and_shows_the_result(
        self, demo: Server, quiet_page: Page, tmp_path: Path
    ) -> None:
        page, calendar = quiet_page, tmp_path / ".assent" / "calendar.db"
        await sign_in(page, demo)
        await page.goto(f"{demo.url}/inbox")
        await page.get_by_role("link", name="Assistant").click()
        await page.get_by_label("Your request").fill("schedule something")
        await page.keyboard.press("Enter")
        await page.get_by_label("Your answer").fill("a meeting called Standup tomorrow at 9am")
        await page.get_by_role("button", name="Send answer").click()
        await page.get_by_text("Reject…").click()
        await page.get_by_label("Reason (sent to the agent)").fill("should be 10am")
        await page.get_by_role("button", name="Reject", exact=True).click()
        await expect(page.get_by_role("heading", name=re.compile("10:00"))).to_be_visible()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_role("log")).to_contain_text("Done: Standup")
        assert events_in(calendar) == [("Standup", "10:00")]

        request = page.get_by_label("Your request")
        await expect(request).to_be_focused()
        await request.fill("move the Standup to 11am")
        await page.keyboard.press("Enter")
        await expect(page.locator(".proposal del")).to_contain_text("T10:00")
        await expect(page.locator(".proposal ins")).to_contain_text("T11:00")
        await expect(page.get_by_role("heading", name=re.compile("11:00"))).to_be_focused()
        await page.keyboard.press("Enter")  # a second one, which must not approve
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("button", name="Approve")).to_be_focused()
        assert events_in(calendar) == [("Standup", "10:00")]
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("log")).to_contain_text("Changed: Standup")
        assert events_in(calendar) == [("Standup", "11:00")]

    async def test_clicks_that_began_before_the_proposal_approve_nothing(
        self, demo: Server, page: Page, tmp_path: Path
    ) -> None:
        await sign_in(page, demo)
        await page.goto(f"{demo.url}{PATH}")
        await page.get_by_label("Your request").fill("create a meeting called Standup tomorrow at 9am")
        await page.get_by_role("button", name="Ask").click()
        await page.get_by_role("button", name="Approve").click(trial=True)
        place = await page.get_by_role("button", name="Approve").bounding_box()
        assert place
        async with httpx.AsyncClient(base_url=demo.url, trust_env=False, timeout=60) as http:
            item = await page.locator(".proposal").get_attribute("data-item")
            key = {"x-api-key": demo.said["reviewer key"].split()[0]}
            shown = (await http.get(f"/api/inbox/items/{item}", headers=key)).json()
            body = {"revision": shown["revision"], "hash": shown["hash"], "verb": "reject", "message": "at 10am"}
            (await http.post(f"/api/inbox/items/{item}/decision", json=body, headers=key)).raise_for_status()
        await expect(page.get_by_role("heading", name=re.compile("10:00"))).to_be_visible()
        for _ in range(4):
            await page.mouse.click(place["x"] + 5, place["y"] + 5)
            await page.wait_for_timeout(200)
        assert events_in(tmp_path / ".assent" / "calendar.db") == []
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_role("log")).to_contain_text("Done: Standup")

    async def test_decision_made_elsewhere_is_shown(self, demo: Server, page: Page) -> None:
        await sign_in(page, demo)
        await page.goto(f"{demo.url}{PATH}")
        await page.get_by_label("Your request").fill("create a meeting called Standup tomorrow at 9am")
        async with page.expect_response("**/api/inbox/events*"):
            await page.get_by_role("button", name="Ask").click()
        item = await page.locator(".proposal").get_attribute("data-item")
        key = {"x-api-key": demo.said["reviewer key"].split()[0]}
        async with httpx.AsyncClient(base_url=demo.url, headers=key, trust_env=False, timeout=60) as http:
            shown = (await http.get(f"/api/inbox/items/{item}")).json()
            verdicts = [{"key": action["key"], "verb": "approve"} for action in shown["actions"]]
            body = {"revision": shown["revision"], "hash": shown["hash"], "actions": verdicts}
            decided = await http.post(f"/api/inbox/items/{item}/decision", json=body)
            assert decided.status_code == 200, decided.text
        await expect(page.get_by_role("log")).to_contain_text("Done: Standup")

    async def test_item_shows_the_sentence_of_the_person(self, demo: Server, page: Page) -> None:
        await sign_in(page, demo)
        await page.goto(f"{demo.url}{PATH}")
        await page.get_by_label("Your request").fill("create a meeting called Zoo tomorrow at 9am")
        await page.get_by_role("button", name="Ask").click()
        await page.get_by_role("link", name="Change it, or decide it in the inbox").click()
        await expect(page.locator(".context")).to_contain_text("create a meeting called Zoo tomorrow at 9am")

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    async def test_axe_finds_nothing_and_it_fits_a_phone(
        self, demo: Server, browser: Browser, axe: str, scheme: Literal["light", "dark"]
    ) -> None:
        async with await browser.new_context(color_scheme=scheme) as context:
            page = await context.new_page()
            await sign_in(page, demo)
            for request in ("schedule something", "create 2 events: Zoo at 10am and Lunch with Bob at 12pm", "hello"):
                await page.goto(f"{demo.url}{PATH}")
                await page.get_by_label("Your request").fill(request)
                await page.get_by_role("button", name="Ask").click()
                await expect(page.get_by_role("log")).to_be_visible()
                assert await violations(page, axe, scheme) == []
                for width in (1280, 390, 320):
                    await page.set_viewport_size({"width": width, "height": 800})
                    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (request, width)

    async def test_without_scripts_the_flow_is_the_same(self, demo: Server, browser: Browser, tmp_path: Path) -> None:
        async with await browser.new_context(java_script_enabled=False, locale="zh-CN") as context:
            page = await context.new_page()
            key = demo.said["reviewer key"].split()[0]
            await page.request.post(f"{demo.url}/api/session", data={"credential": key}, headers={"origin": demo.url})
            await page.goto(f"{demo.url}{PATH}")
            await page.get_by_label("您的要求").fill("create a meeting called Standup tomorrow at 9am")
            await page.get_by_role("button", name="发送").click()
            await page.get_by_role("button", name="批准").click()
            await expect(page.get_by_role("log")).to_contain_text("Done: Standup")
        wait_until(
            lambda: events_in(tmp_path / ".assent" / "calendar.db") == [("Standup", "09:00")], "there is no event"
        )
