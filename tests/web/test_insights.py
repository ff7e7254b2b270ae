"""Insights in the browser and over REST: the same figures in charts and tables, and nobody else's without the right."""

import re
from datetime import UTC, datetime

import httpx
import pytest
from playwright.async_api import Page, expect

from assent.assistant.demo.history import history
from assent.identity.model.access import Role
from tests.api.house import LOOPBACK
from tests.cli.command import Server
from tests.web.conftest import Desk

FROM_HERE = {"origin": LOOPBACK, "sec-fetch-site": "same-origin"}
PATH, REMOVAL = "/inbox/insights", "/inbox/sample-data/removal"


async def read(browser: httpx.AsyncClient, path: str = "/inbox/insights") -> str:
    page = await browser.get(path)
    assert page.status_code == 200, page.text
    return page.text


def plain(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


async def approve(desk: Desk, count: int = 1) -> None:
    for _ in range(count):
        item = await desk.ask()
        assert (await desk.decide(item["id"], "approve")).status_code == 303


async def test_nothing_yet_is_said_plainly(desk: Desk) -> None:
    page = plain(await read(desk.ana))
    for words in ("No request from this range has been decided yet.", "No open items.", "No decisions"):
        assert words in page


async def test_the_figures_stand_in_charts_and_tables(desk: Desk) -> None:
    await approve(desk, 2)
    await desk.ask()
    page = await read(desk.ana)
    words = plain(page)
    assert "Requests 3 Decided 2 Median time to decision" in words
    assert "under an hour 1 1 to 24 hours 0" in words
    assert re.search(r"tool 2 100 % 0 % 0 % 0 %", words)
    assert re.search(r"you 2 100 % 0 % 0 % 0 %", words)
    assert len(re.findall(r'<svg class="chart (?:wide|slim)"[^>]*role="img" aria-labelledby', page)) == 2
    assert page[page.index("<main") :].count("<circle") == 2, "one day, in two sizes"
    assert "style=" not in page


@pytest.mark.parametrize(("days", "rows"), [(7, 7), (30, 30), (90, 13)])
async def test_the_range_is_in_the_address(desk: Desk, days: int, rows: int) -> None:
    await approve(desk)
    page = await read(desk.ana, f"/inbox/insights?days={days}")
    assert f'href="/inbox/insights?days={days}" aria-current="page"' in page
    table = page[page.index("As a table") : page.index('id="backlog"')]
    assert table.count("<tr>") == rows + 1
    assert 'days=30" aria-current="page"' in await read(desk.ana, "/inbox/insights?days=5")


async def test_people_see_only_their_own_decisions(desk: Desk) -> None:
    await approve(desk)
    ben = await desk.house.signed_in("ben")
    page = plain(await read(ben))
    assert "Your own decisions No decisions in this range." in page
    assert "ana" not in page.partition("Your own decisions")[2]
    auditor = await desk.house.signed_in("kim", Role.ADMIN)
    assert re.search(r"By reviewer .* ana 1 100 %", plain(await read(auditor)))
    found = (await ben.get("/api/insights")).json()
    assert (found["reviewers"], found["tools"][0]["approved"]) == ([], 1)
    assert [one["total"] for one in (await auditor.get("/api/insights?days=90")).json()["reviewers"]] == [1]


async def test_who_approves_without_looking_is_told_gently(desk: Desk) -> None:
    await approve(desk, 10)
    words = plain(await read(desk.ana))
    assert re.search(r"You approved 10 of 10 requests, in about [\d.]+ s each\.", words)
    auditor = await desk.house.signed_in("kim", Role.ADMIN)
    assert "ana approved 10 of 10 requests" in plain(await read(auditor))
    [stamp] = (await desk.ana.get("/api/insights")).json()["stamps"]
    assert (stamp["approved"], stamp["decisions"]) == (10, 10)


async def test_rest_refuses_other_ranges_and_callers_without_the_right(desk: Desk) -> None:
    assert (await desk.agent.get("/api/insights?days=8")).status_code == 422
    blind = desk.house.client(await desk.house.key_of("ana", "comments:write"))
    assert (await blind.get("/api/insights")).status_code == 403
    assert (await blind.get("/inbox/insights")).status_code == 403
    ages = (await desk.agent.get("/api/insights")).json()["backlog"]
    assert [(one["over"], one["under"]) for one in ages][-1] == (604800.0, None)


async def test_in_chinese(desk: Desk) -> None:
    await approve(desk, 10)
    desk.ana.headers["accept-language"] = "zh-CN"
    page = plain(await read(desk.ana))
    assert "您批准了 10 项请求中的 10 项" in page
    assert "决定用时" in page
    assert "Median" not in page


async def test_a_browser_shows_it_without_a_complaint(quiet_page: Page, server: Server) -> None:
    key = server.said["reviewer key"].split()[0]
    signed = await quiet_page.request.post(
        f"{server.url}/api/session", data={"credential": key}, headers={"origin": server.url}
    )
    assert signed.ok
    for width in (1280, 390):
        await quiet_page.set_viewport_size({"width": width, "height": 844})
        await quiet_page.goto(f"{server.url}/inbox/insights?days=7")
        await expect(quiet_page.get_by_role("heading", name="Open items by age")).to_be_visible()
        assert await quiet_page.evaluate("document.documentElement.scrollWidth") <= width


async def test_sample_data_is_marked_and_removed_with_one_click(desk: Desk) -> None:
    boss = await desk.house.signed_in("boss", Role.ADMIN)
    await desk.house.services.samples.add("default", history(datetime.now(UTC))[-12:])
    page = (await desk.ana.get(PATH)).text
    assert "This page includes 12 made-up items" in page
    assert REMOVAL not in page
    [item, *_] = (await desk.ana.get("/api/inbox/items")).json()["items"]
    assert "Sample data" in await desk.open(item["id"])
    assert "(sample)" in (await desk.ana.get("/inbox?tab=resolved")).text
    assert (await desk.ana.post(REMOVAL, headers=FROM_HERE)).status_code == 403
    assert REMOVAL in (await boss.get(PATH)).text
    assert (await boss.post(REMOVAL, headers=FROM_HERE)).status_code == 303
    assert "made-up" not in (await boss.get(PATH)).text
    assert (await desk.ana.get("/api/sample-data")).json() == {"items": 0}
