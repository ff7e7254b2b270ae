"""Controls of `test_safety.py`: the same attempts on pages whose scripts are served without one guard. There they
succeed, so it is the guard that stops them. A control whose guard is gone from the script fails."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from assent.surfaces import web
from tests.cli.command import Server, serving
from tests.web.conftest import GRAPHS
from tests.web.test_browser import ask, sign_in, stands
from tests.web.test_safety import CALLS, TYPES, amount_of, pause, ready, slow

STATIC = Path(web.__file__).parent / "static"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    database = f"sqlite:///{tmp_path_factory.mktemp('controls') / 'assent.db'}"
    arguments = ("dev", "--port", "0", "--no-reload", "--config", str(GRAPHS), "--database", database)
    with serving(Path(GRAPHS).parent, *arguments) as running:
        yield running


@pytest.fixture
async def reader(page: Page, server: Server) -> Page:
    await sign_in(page, server)
    return page


async def without(page: Page, script: str, *guards: str, instead: str = "return;") -> None:
    """Serves a script of the page with functions that do nothing. `guards` are the lines at which they begin."""
    text = (STATIC / script).read_text(encoding="utf-8")
    assert [guard for guard in guards if text.count(guard) != 1] == []
    for guard in guards:
        text = text.replace(guard, f"{guard} {instead}")
    await page.route(
        f"**/static/*/{script}", lambda route: route.fulfill(body=text, content_type="text/javascript; charset=utf-8")
    )


def review(server: Server, path: str, **body: Any) -> Any:
    """What the reviewer does over REST."""
    key = {"x-api-key": server.said["reviewer key"].split()[0]}
    done = httpx.post(f"{server.url}/api/inbox/{path}", json=body, headers=key, trust_env=False, timeout=30)
    assert done.status_code == 200, done.text
    return done.json()


async def becomes(page: Page, server: Server, item_id: str, **facts: str) -> None:
    async with asyncio.timeout(60):
        while {name: stands(server, item_id)[name] for name in facts} != facts:
            await page.wait_for_timeout(50)


async def test_control_change_is_dropped_where_nothing_counts_changes(server: Server, reader: Page) -> None:
    """1. Neither the script nor the field with all arguments, by which the server notices."""
    item_id = ask(server, title="One", actions=CALLS[:1])
    await without(reader, "decision.js", "export function weigh(by) {")
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await ready(reader)
    await reader.locator("summary", has_text="Edit").click()
    await reader.get_by_role("textbox", name="amount").fill("49.9")
    await reader.locator("[name='a0.raw']").evaluate("field => field.remove()")
    await reader.get_by_role("button", name="Approve", exact=True).click()
    await becomes(reader, server, item_id, status="APPROVED")
    assert amount_of(server, item_id) == 249.9


async def test_control_key_approves_the_row_just_left_where_nothing_is_held(server: Server, reader: Page) -> None:
    """2."""
    ids = [ask(server, title=f"Slow {n}", type="slow_test", actions=CALLS[:1]) for n in (2, 1)]
    await without(reader, "decision.js", "export function hold(why) {")
    await reader.goto(f"{server.url}/inbox/{ids[1]}?q=type:slow_test")
    await ready(reader)
    await reader.evaluate("document.querySelector('#list a').focus()")
    await slow(reader, 3000)
    await reader.keyboard.press("j")
    await reader.evaluate("document.activeElement.blur()")
    await reader.keyboard.press("Escape")
    await reader.keyboard.press("a")
    await becomes(reader, server, ids[1], status="APPROVED")


async def test_control_typed_text_approves_where_bursts_are_not_noticed(server: Server, reader: Page) -> None:
    """3."""
    item_id = ask(server, title="Text", actions=CALLS[:1])
    await without(reader, "keys.js", "function bursts(event) {")
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await ready(reader)
    await reader.evaluate(TYPES, ["and a", 20])
    await becomes(reader, server, item_id, status="APPROVED")


async def test_control_enter_in_an_untouched_field_approves_where_nothing_stops_it(
    server: Server, reader: Page
) -> None:
    """3."""
    item_id = ask(server, title="Enter", actions=CALLS[:1])
    await without(reader, "keys.js", "function entered(event) {")
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await ready(reader)
    await reader.locator("button[form=decision][hidden]").evaluate("button => button.remove()")
    await reader.locator("summary", has_text="Edit").click()
    await reader.get_by_role("textbox", name="amount").press("Enter")
    await becomes(reader, server, item_id, status="APPROVED")


async def test_control_bulk_without_the_pages_preview_approves_a_risky_call(server: Server) -> None:
    """4. REST leaves cautions and risk to its caller."""
    item_id = ask(server, title="Risky", actions=[{"name": "run_shell", "args": {"command": "sudo rm -rf /srv | sh"}}])
    item = stands(server, item_id)
    named = {name: item[name] for name in ("id", "revision", "hash")}
    done = review(server, "bulk", items=[named], verb="approve")
    assert [result["status"] for result in done["results"]] == ["APPROVED"]


async def test_control_page_without_live_updates_keeps_its_old_story(server: Server, reader: Page) -> None:
    """6."""
    item = pause(server, "payments", "raise the limit")
    await without(reader, "live.js", "export function follow(kinds, after, changed, connection) {")
    await reader.goto(f"{server.url}/inbox/{item['id']}")
    await ready(reader)
    review(server, f"items/{item['id']}/decision", revision=item["revision"], hash=item["hash"], verb="approve")
    await becomes(reader, server, item["id"], execution="done")
    await expect(reader.locator(".head")).to_contain_text("Pending")
    await expect(reader.locator(".outcome")).to_have_count(0)


async def test_control_edit_is_lost_where_nothing_is_kept_in_the_browser(server: Server, reader: Page) -> None:
    """7."""
    item_id = ask(server, title="Cut off", actions=CALLS[:1])
    await without(reader, "inbox.js", "function keepLocally() {")
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await reader.route("**/draft", lambda route: route.abort())
    await reader.locator("summary", has_text="Edit").click()
    async with reader.expect_event("requestfailed"):
        await reader.get_by_role("textbox", name="amount").fill("49.9")
    reader.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
    await reader.goto(f"{server.url}/inbox/{item_id}")
    await expect(reader.get_by_label("amount", exact=True)).to_have_value("249.9")


async def test_control_value_under_another_name_is_shown(server: Server, reader: Page) -> None:
    """8."""
    secret = "sk-live-4711"
    item_id = ask(server, title="Rotate", actions=[{"name": "rotate", "args": {"reference": secret}}])
    await reader.goto(f"{server.url}/inbox/{item_id}")
    assert secret in await reader.content()
