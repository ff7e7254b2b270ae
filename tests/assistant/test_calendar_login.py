"""The login: asked for in either era, given in a browser, used once, revoked."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastmcp.client.elicitation import ElicitResult
from mcp.shared.exceptions import MCPError
from mcp_types import URL_ELICITATION_REQUIRED

from assent.assistant.calendar.database import Database
from assent.assistant.calendar.login import LINK_SECONDS, STATE_SECONDS, Login
from assent.assistant.calendar.server import http_app
from tests.assistant.calendars import ERAS, LEGACY, MODERN, Asked, calendar, call, raw, refused, served


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with served(http_app(calendar(tmp_path, login=True))) as url:
        yield url


@pytest.fixture
async def browser() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        yield client


async def asked(address: str, era: str = LEGACY) -> str:
    """The link that a call of a calendar's tool is answered with."""
    if era == MODERN:
        person = Asked(ElicitResult(action="decline"))
        await refused(f"{address}/mcp", "list_calendars", era=era, person=person)
        (question,) = person.questions
        assert question.mode == "url"
        return str(question.url)
    with pytest.raises(MCPError) as caught:
        await raw(f"{address}/mcp", "list_calendars", era=era)
    assert caught.value.error.code == URL_ELICITATION_REQUIRED == -32042
    (elicitation,) = caught.value.error.data["elicitations"]
    assert elicitation["mode"] == "url"
    assert elicitation["url"].endswith(elicitation["elicitationId"])
    return str(elicitation["url"])


def callback_of(page: httpx.Response) -> str:
    assert page.status_code == 200
    match = re.search(r'href="(/auth/callback\?state=[\w-]{43})"', page.text)
    assert match
    return match[1]


async def allow(browser: httpx.AsyncClient, address: str, link: str) -> httpx.Response:
    return await browser.get(f"{address}{callback_of(await browser.get(link))}")


@pytest.mark.parametrize("era", ERAS)
async def test_login_is_asked_allowed_used_and_revoked(address: str, browser: httpx.AsyncClient, era: str) -> None:
    link = await asked(address, era)
    assert link.startswith(f"{address}/auth/connect/")
    done = await allow(browser, address, link)
    assert (done.status_code, "You may close this tab." in done.text) == (200, True)
    assert await call(f"{address}/mcp", "list_calendars", era=era)
    assert await call(f"{address}/mcp", "revoke_login", era=era) == {"revoked": True}
    again = await asked(address, era)
    assert again != link
    assert (await browser.get(link)).status_code == 404


async def test_modern_call_continues_after_the_login(address: str, browser: httpx.AsyncClient) -> None:
    """The client opens the link, and the same call, sent again with the answer, does its work."""

    async def visit() -> Any:
        await allow(browser, address, person.questions[-1].url)
        return ElicitResult(action="accept")

    person = Asked(visit)
    made = await call(
        f"{address}/mcp", "create_event", era=MODERN, person=person, start="2026-11-17T09:00", name="Standup"
    )
    assert made["event_details"]["name"] == "Standup"
    assert len(person.questions) == 1


async def test_call_that_needs_login_and_form_asks_both(address: str, browser: httpx.AsyncClient) -> None:
    async def answer() -> Any:
        if person.questions[-1].mode == "form":
            return {"people": 3}
        await allow(browser, address, person.questions[-1].url)
        return ElicitResult(action="accept")

    person = Asked(answer)
    await call(f"{address}/mcp", "book_room", era=MODERN, person=person, start="2026-11-17T09:00")
    assert [question.mode for question in person.questions] == ["url", "form"]


async def test_accepting_without_a_login_asks_again(address: str) -> None:
    person = Asked(ElicitResult(action="accept"))
    with pytest.raises(RuntimeError, match="rounds"):
        await raw(f"{address}/mcp", "list_calendars", era=MODERN, person=person)
    assert len({question.url for question in person.questions}) == 1


async def test_client_without_links_gets_the_url_as_text(address: str) -> None:
    assert f"{address}/auth/connect/" in await refused(f"{address}/mcp", "list_calendars", era=MODERN)


@pytest.mark.parametrize("era", ERAS)
async def test_maps_need_no_login(address: str, era: str) -> None:
    assert await call(f"{address}/mcp", "search_places", era=era, query="cafe")


@pytest.mark.parametrize("tool", ["list_calendars", "list_events", "create_event", "update_event", "book_room"])
async def test_every_tool_of_the_calendar_needs_a_login(address: str, tool: str) -> None:
    with pytest.raises(MCPError) as caught:
        await raw(f"{address}/mcp", tool, era=LEGACY)
    assert caught.value.error.code == -32042


async def test_a_state_is_used_once(address: str, browser: httpx.AsyncClient) -> None:
    link = await asked(address)
    first, second = callback_of(await browser.get(link)), callback_of(await browser.get(link))
    assert first != second
    assert (await browser.head(f"{address}{first}")).status_code == 405
    assert (await browser.get(f"{address}{first}")).status_code == 200
    await call(f"{address}/mcp", "revoke_login")
    for used in (first, second):
        assert (await browser.get(f"{address}{used}")).status_code == 400
    assert await asked(address)


@pytest.mark.parametrize("query", ["", "?state=", "?state=guessed"])
async def test_a_state_cannot_be_guessed(address: str, browser: httpx.AsyncClient, query: str) -> None:
    await browser.get(await asked(address))
    assert (await browser.get(f"{address}/auth/callback{query}")).status_code == 400
    assert await asked(address)


async def test_revoke_endpoint_ends_the_login_and_refuses_other_origins(
    address: str, browser: httpx.AsyncClient
) -> None:
    await allow(browser, address, await asked(address))
    revoked = await browser.post(f"{address}/auth/revoke", headers={"Origin": "https://elsewhere.example"})
    assert revoked.status_code == 403
    assert (await browser.post(f"{address}/auth/revoke")).json() == {"revoked": True}
    assert (await browser.post(f"{address}/auth/revoke")).json() == {"revoked": False}
    assert await asked(address)


async def test_pages_forbid_caching_framing_and_referrers(address: str, browser: httpx.AsyncClient) -> None:
    headers = (await browser.get(await asked(address))).headers
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


async def test_login_survives_a_restart(address: str, browser: httpx.AsyncClient, tmp_path: Path) -> None:
    await allow(browser, address, await asked(address))
    assert await call(calendar(tmp_path, login=True), "list_calendars")


async def test_without_login_there_are_no_login_routes_or_tools(tmp_path: Path, browser: httpx.AsyncClient) -> None:
    with served(http_app(calendar(tmp_path))) as url:
        assert await call(f"{url}/mcp", "list_calendars")
        assert (await browser.get(f"{url}/auth/callback?state=x")).status_code == 404
        assert "revoke_login" in await refused(f"{url}/mcp", "revoke_login")


async def test_url_of_the_login_pages_is_a_setting(tmp_path: Path) -> None:
    server = calendar(tmp_path, login=True, url="https://calendar.example/")
    with pytest.raises(MCPError) as caught:
        await raw(server, "list_calendars", era=LEGACY)
    assert caught.value.error.data["elicitations"][0]["url"].startswith("https://calendar.example/auth/connect/")


async def test_call_without_a_page_url_is_refused_with_the_reason(tmp_path: Path) -> None:
    assert "over HTTP" in await refused(calendar(tmp_path, login=True), "list_calendars")


class TestTime:
    @pytest.fixture
    def login(self, tmp_path: Path) -> Login:
        self.time = 0.0
        return Login(Database(tmp_path / "calendar.db"), now=lambda: self.time)

    def test_page_submitted_too_late_is_refused(self, login: Login) -> None:
        login_id = login.wanted()
        state = login.state(login_id)
        assert state
        self.time = STATE_SECONDS
        assert not login.complete(state)
        fresh = login.state(login_id)
        assert fresh
        assert login.complete(fresh)

    def test_link_expires_after_a_week(self, login: Login) -> None:
        login_id = login.wanted()
        self.time = LINK_SECONDS
        assert login.state(login_id) is None
        assert login.wanted() != login_id

    def test_revoking_ends_pending_logins(self, login: Login) -> None:
        state = login.state(login.wanted())
        assert state
        assert not login.revoke()
        assert not login.complete(state)
        assert not login.connected()
