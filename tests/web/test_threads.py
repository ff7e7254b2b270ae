"""Threads in the browser: found by status, and one with its conversation, its state, its past and its graph."""

import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Page, expect

from assent.identity.model.access import operator
from assent.settings import Mode
from assent.threads.model.threads import ThreadStatus
from assent.threads.rows import threads
from tests.api.house import LOOPBACK, Builder
from tests.cli.command import Server
from tests.web.conftest import GRAPHS, Desk

HOSTILE = "<script>window.ran = 1</script> \u202egnp.exe a\u200bb"
PAY = {"id": "c1", "name": "pay", "args": {"amount": 598, "to": "Ada"}}
LOOK = {"id": "c2", "function": {"name": "look", "arguments": '{"at": 1}'}}
TALK: dict[str, Any] = {
    "messages": [
        {"type": "system", "content": "Be brief."},
        {"type": "human", "content": [{"type": "text", "text": "Pay the invoice"}, {"type": "image_url"}]},
        {"type": "ai", "content": "", "tool_calls": [PAY]},
        {"type": "tool", "tool_call_id": "c1", "content": "paid 598", "status": "success"},
        {"role": "assistant", "content": "Done.", "tool_calls": [LOOK]},
        {"type": "tool", "tool_call_id": "c2", "content": "no such page", "status": "error"},
        {"type": "ai", "content": HOSTILE},
        "an odd one",
    ]
}


async def thread(desk: Desk, status: ThreadStatus = ThreadStatus.IDLE, values: Any = None, **metadata: Any) -> str:
    """A thread that stands as given, without a run."""
    body = {"metadata": {"graph_id": "ask", **metadata}}
    made = str((await desk.agent.post("/threads", json=body)).json()["thread_id"])
    await stand(desk, made, status, values)
    return made


async def stand(desk: Desk, thread_id: str, status: ThreadStatus, values: Any = None) -> None:
    state: dict[str, Any] = {"values": values or {}, "interrupts": {}, "error": None, "next": []}
    await desk.house.services.store.write("default", threads.set_state, thread_id, status=status, **state)


async def read(browser: httpx.AsyncClient, path: str, status: int = 200) -> str:
    page = await browser.get(path)
    assert page.status_code == status, page.text
    return page.text


def plain(page: str) -> str:
    """What is read on it, without markup."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def listed(page: str) -> list[str]:
    return re.findall(r'href="/inbox/threads/([0-9a-f-]{36})"', page)


@pytest.mark.promise("INBOX-31")
async def test_tabs_show_the_threads_of_a_status_by_their_address(desk: Desk) -> None:
    waiting = (await desk.raised("Which way?"))["source"]["thread_id"]
    others = {status: await thread(desk, ThreadStatus(status)) for status in ("idle", "busy", "error")}
    for status, expected in {**others, "interrupted": waiting}.items():
        page = await read(desk.ana, f"/inbox/threads?status={status}")
        assert listed(page) == [expected]
        assert f'href="/inbox/threads?status={status}" aria-current="page"' in page
    assert set(listed(await read(desk.ana, "/inbox/threads"))) == {waiting, *others.values()}
    assert set(listed(await read(desk.ana, "/inbox/threads?status=nonsense"))) == {waiting, *others.values()}


@pytest.mark.promise("INBOX-31")
async def test_pages_are_turned_by_offset_and_limit(desk: Desk) -> None:
    made = [await thread(desk) for _ in range(12)][::-1]
    first = await read(desk.ana, "/inbox/threads?status=idle")
    assert listed(first) == made[:10]
    assert 'rel="next" href="/inbox/threads?status=idle&amp;offset=10"' in first
    second = await read(desk.ana, "/inbox/threads?status=idle&offset=10")
    assert listed(second) == made[10:]
    assert 'rel="prev" href="/inbox/threads?status=idle"' in second
    assert 'rel="next"' not in second
    assert listed(await read(desk.ana, "/inbox/threads?limit=25")) == made
    assert "No more threads." in await read(desk.ana, "/inbox/threads?offset=500")


async def test_a_row_says_what_is_needed_and_what_was_said_last(desk: Desk) -> None:
    item = await desk.raised("Which way?")
    await thread(desk, values={"messages": [{"type": "ai", "content": "All is\n done."}]}, title="Trip to Marenby")
    page = await read(desk.ana, "/inbox/threads")
    asks, done = re.findall(r"<li.*?</li>", page[page.index("thread-rows") :], re.DOTALL)[::-1]
    assert "Needs attention" in asks
    assert "Requires Action" in asks
    assert item["title"] in asks
    assert "<strong>ask</strong>" in asks
    assert "<strong>Trip to Marenby</strong>" in done
    assert "All is done." in done
    assert "Requires Action" not in done
    assert 'datetime="' in done


async def test_the_list_can_be_narrowed_to_a_graph(desk: Desk) -> None:
    await thread(desk)
    other = await thread(desk, graph_id="stop")
    page = await read(desk.ana, "/inbox/threads?graph=stop")
    assert listed(page) == [other]
    assert '<option value="stop" selected>stop</option>' in page


@pytest.mark.promise("INBOX-31", "INBOX-29")
async def test_an_inbox_shows_the_threads_of_its_graph_and_says_where_they_run(desk: Desk) -> None:
    await thread(desk)
    other = await thread(desk, graph_id="stop")
    made = await desk.ana.post("/api/inboxes", json={"graph_id": "stop", "url": LOOPBACK, "name": "Stops"})
    inbox = made.json()["id"]
    page = await read(desk.ana, f"/inbox/threads?status=idle&inbox={inbox}")
    assert re.search(r">Stops</a> <span[^>]*>›</span> <a[^>]*>Threads</a> <span[^>]*>›</span> <h1>Idle</h1>", page)
    assert f'href="/inbox/threads?status=busy&amp;inbox={inbox}"' in page
    assert re.findall(r'href="(/inbox/threads/[^"]*)"', page) == [f"/inbox/threads/{other}?inbox={inbox}"]
    shown = await read(desk.ana, f"/inbox/threads/{other}?inbox={inbox}")
    assert f"/studio/thread/{other}?baseUrl=http%3A%2F%2F127.0.0.1%3A2024" in shown
    assert ">Stops</a>" in shown
    assert len(listed(await read(desk.ana, f"/inbox/threads?inbox={uuid4()}"))) == 2


async def test_nothing_yet_says_what_would_stand_there(desk: Desk) -> None:
    assert "No threads yet." in await read(desk.ana, "/inbox/threads")
    assert "No threads match." in await read(desk.ana, "/inbox/threads?status=busy")


async def test_the_conversation_with_its_calls_and_their_results(desk: Desk) -> None:
    made = await thread(desk, values=TALK)
    page = await read(desk.ana, f"/inbox/threads/{made}")
    talk = plain(page[page.index('id="talk"') : page.index('id="state"')])
    for words in (
        "Instructions Be brief.",
        "Person Pay the invoice [image_url]",
        "pay amount 598 to Ada Result paid 598",
    ):
        assert words in talk
    assert "look at 1 Failed with no such page" in talk
    assert "an odd one" in talk
    assert "<script>window" not in page
    assert "⟨U+202E⟩" in page


async def test_what_it_waits_for_its_past_and_its_graph(desk: Desk) -> None:
    item = await desk.raised("Which way?")
    page = await read(desk.ana, f"/inbox/threads/{item['source']['thread_id']}")
    assert f'href="/inbox/{item["id"]}"' in page
    past = plain(page[page.index('id="history"') : page.index('id="runs"')])
    assert re.search(r"0 __start__ put .* -1 input __start__", past)
    assert re.search(r'<g class="node waiting"><title>put \(waiting here\)</title>', page)
    assert ">START</text>" in page
    assert "Succeeded" in page[page.index('id="runs"') :]
    assert 'style="' not in page
    assert "&#34;ask&#34;: &#34;Which way?&#34;" in page


async def test_a_settled_question_stands_beside_the_thread(desk: Desk, at_once: None) -> None:
    item = await desk.raised("Which way?")
    await desk.decide(item["id"], "respond", **{"a0.message": "left"})
    await desk.answer(item)
    page = await read(desk.ana, f"/inbox/threads/{item['source']['thread_id']}")
    assert "Waiting for a decision" not in page
    assert f'href="/inbox/{item["id"]}"' in page[page.index("Earlier decisions") :]


@pytest.mark.promise("INBOX-29")
async def test_open_in_studio_names_this_server_or_where_it_is_deployed(desk: Desk) -> None:
    made = await thread(desk)
    here = f"https://smith.langchain.com/studio/thread/{made}?baseUrl=http%3A%2F%2F127.0.0.1%3A2024"
    assert f'href="{here}"' in await read(desk.ana, f"/inbox/threads/{made}")


@pytest.mark.promise("INBOX-29")
async def test_a_deployed_server_names_the_address_it_was_given(tmp_path: Path, migrated_file: Path) -> None:
    async with AsyncExitStack() as stack:
        there = "https://agents.example.com"
        house = await Builder(tmp_path, migrated_file, stack)(Mode.SERVE, config=GRAPHS, url=there)
        desk = Desk(house, await house.signed_in("ana"), house.client(await house.key()))
        made = await thread(desk)
        page = await read(desk.ana, f"/inbox/threads/{made}")
        assert f'/studio/thread/{made}?baseUrl=https%3A%2F%2Fagents.example.com"' in page


@pytest.mark.parametrize(
    ("mode", "says"),
    [(Mode.DEV, "assent dev --allow-origin studio"), (Mode.SERVE, "https://smith.langchain.com to the setting")],
)
async def test_studio_button_says_what_to_set_while_studio_is_refused(
    tmp_path: Path, migrated_file: Path, mode: Mode, says: str
) -> None:
    async with AsyncExitStack() as stack:
        build = Builder(tmp_path, migrated_file, stack)
        for origins in ((), ("https://smith.langchain.com",)):
            house = await build(mode, config=GRAPHS, cors_origins=origins)
            desk = Desk(house, await house.signed_in("ana"), house.client(await house.key()))
            page = await read(desk.ana, f"/inbox/threads/{await thread(desk)}")
            assert (says in page) is ("Studio may not call" in page) is (not origins)


async def test_a_secret_of_an_item_is_covered_in_the_conversation_and_the_state(desk: Desk) -> None:
    mask = {"default": {"name": "default", "then": "ask", "mask": ["pin"]}}
    await desk.house.services.policies.put(operator(), mask)
    arguments = {"pin": "s3cret-pin", "to": "Ada"}
    asked = {"kind": "confirmation", "tool_calls": [{"call_id": "c1", "tool_name": "pay", "arguments": arguments}]}
    item = await desk.raised(asked)
    assert "s3cret" not in await read(desk.ana, f"/inbox/threads/{item['source']['thread_id']}")
    call = {"id": "c1", "name": "pay", "args": arguments | {"to": "Ben"}}
    values = {"messages": [{"type": "ai", "content": "the pin is s3cret-pin", "tool_calls": [call]}]}
    await stand(desk, item["source"]["thread_id"], ThreadStatus.INTERRUPTED, values)
    page = await read(desk.ana, f"/inbox/threads/{item['source']['thread_id']}")
    assert "the pin is ••••••" in page
    assert "s3cret" not in page


async def test_a_thread_whose_graph_is_gone_is_shown_without_its_past(desk: Desk) -> None:
    made = await thread(desk, values=TALK, graph_id="gone")
    page = await read(desk.ana, f"/inbox/threads/{made}")
    assert "Cannot read the history" in page
    assert "<svg width=" not in page.replace('<svg class="icon"', "")


async def test_a_thread_that_is_not_there_or_not_theirs_is_a_clear_page(desk: Desk) -> None:
    assert "not found" in await read(desk.ana, f"/inbox/threads/{uuid4()}", 404)
    made = await thread(desk)
    viewer = desk.house.client(await desk.house.key_of("ana", "comments:write"))
    assert "lacks the scopes" in await read(viewer, f"/inbox/threads/{made}", 403)
    stranger = desk.house.client(await desk.house.person("eve", tenant="elsewhere"))
    assert "not found" in await read(stranger, f"/inbox/threads/{made}", 404)


async def test_in_chinese(desk: Desk) -> None:
    item = await desk.raised("Which way?")
    desk.ana.headers["accept-language"] = "zh-CN"
    assert "需要处理" in await read(desk.ana, "/inbox/threads")
    page = await read(desk.ana, f"/inbox/threads/{item['source']['thread_id']}")
    assert "在 Studio 中打开" in page
    assert "Conversation" not in page


async def test_a_browser_shows_them_without_a_complaint(quiet_page: Page, server: Server) -> None:
    key = server.said["reviewer key"].split()[0]
    signed = await quiet_page.request.post(
        f"{server.url}/api/session", data={"credential": key}, headers={"origin": server.url}
    )
    assert signed.ok
    await quiet_page.set_viewport_size({"width": 390, "height": 844})
    await quiet_page.goto(f"{server.url}/inbox/threads?status=interrupted")
    await expect(quiet_page.get_by_text("Requires Action").first).to_be_visible()
    assert await quiet_page.evaluate("document.documentElement.scrollWidth") <= 390
    await quiet_page.locator(".thread-rows a").first.click()
    await expect(quiet_page.get_by_role("heading", name="History")).to_be_visible()
    await expect(quiet_page.locator(".drawing .waiting")).to_be_visible()
    assert await quiet_page.evaluate("document.documentElement.scrollWidth") <= 390
    assert server.url != LOOPBACK
