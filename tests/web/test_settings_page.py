"""Settings in the browser: keys and links that are shown once, people, what could not be delivered."""

import re
from html import unescape
from typing import Literal

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from assent.identity.model.access import Role
from tests.api.house import LOOPBACK
from tests.cli.command import Server
from tests.web.conftest import Desk
from tests.web.contrast import CONTRAST

FROM_HERE = {"origin": LOOPBACK, "sec-fetch-site": "same-origin"}
PATH = "/inbox/settings"


@pytest.fixture
async def boss(desk: Desk) -> httpx.AsyncClient:
    return await desk.house.signed_in("boss", Role.ADMIN)


async def send(client: httpx.AsyncClient, below: str, **typed: str | list[str]) -> httpx.Response:
    return await client.post(f"{PATH}{below}", data=typed, headers=FROM_HERE)


def once(page: str) -> str:
    """The secret that a page shows this once."""
    found = re.search(r'<div class="once".*?<code>([^<]*)</code>', page, re.DOTALL)
    assert found, page
    return unescape(found[1])


async def test_this_server_tells_about_itself_and_about_you(desk: Desk) -> None:
    page = (await desk.ana.get(PATH)).text
    for told in (
        "This server",
        "serve",
        "sqlite:///",
        "ana",
        "items:read",
        "those that an administrator adds",
        LOOPBACK,
    ):
        assert told in page, told
    moved = await desk.ana.get("/inbox/status")
    assert (moved.status_code, moved.headers["location"]) == (303, PATH)
    assert f"{PATH}/keys" not in page, "only what they may"


class TestKeys:
    async def test_a_key_is_made_shown_once_used_and_revoked(self, desk: Desk, boss: httpx.AsyncClient) -> None:
        made = await send(boss, "/keys", name="<b>bot", kind="agent", lifetime="30d", scopes=["items:read"])
        assert made.status_code == 200
        secret = once(made.text)
        assert secret not in str(made.url)
        assert "no-store" in made.headers["cache-control"]
        listed = (await boss.get(f"{PATH}/keys")).text
        assert secret not in listed
        assert "&lt;b&gt;bot" in listed
        client = desk.house.client(secret)
        assert (await client.get("/api/inbox/items")).status_code == 200
        [key] = [one for one in (await boss.get("/api/keys")).json()["items"] if one["name"] == "<b>bot"]
        assert (key["scopes"], key["expires_at"] is not None) == (["items:read"], True)
        assert f"{PATH}/keys/{key['id']}/revocation" in listed
        done = await send(boss, f"/keys/{key['id']}/revocation")
        assert done.headers["location"] == f"{PATH}/keys?done=revoked"
        desk.house.forget()
        assert (await client.get("/api/inbox/items")).status_code == 401
        assert f"{key['id']}/revocation" not in (await boss.get(f"{PATH}/keys")).text

    async def test_mistakes_are_told_and_nothing_typed_is_lost(self, boss: httpx.AsyncClient) -> None:
        before = len((await boss.get("/api/keys")).json()["items"])
        refused = await send(boss, "/keys", name="clever", kind="agent", scopes=["decide"], lifetime="90d")
        assert refused.status_code == 403
        assert "a key of kind agent can never hold decide" in refused.text
        assert 'value="clever"' in refused.text
        assert 'value="decide" checked' in refused.text
        assert '<option value="90d" selected>' in refused.text
        nobody = await send(boss, "/keys", name="mine", kind="reviewer")
        assert (nobody.status_code, "belongs to a user" in nobody.text) == (422, True)
        assert len((await boss.get("/api/keys")).json()["items"]) == before

    async def test_a_key_is_rotated_and_its_successor_shown_once(self, desk: Desk, boss: httpx.AsyncClient) -> None:
        made = await send(boss, "/keys", name="bot", kind="agent", lifetime="1d")
        [key] = [one for one in (await boss.get("/api/keys")).json()["items"] if one["name"] == "bot"]
        page = (await boss.get(f"{PATH}/keys")).text
        assert "expires soon" in page
        assert f"{PATH}/keys/{key['id']}/rotation" in page
        rotated = await send(boss, f"/keys/{key['id']}/rotation", overlap="1h")
        old, new = [await desk.house.client(once(one.text)).get("/api/me") for one in (made, rotated)]
        assert (old.status_code, old.json()) == (200, new.json())
        desk.house.forget()
        wrong = await send(boss, f"/keys/{key['id']}/rotation", overlap="1000d")
        assert (wrong.status_code, "at most 30 days" in wrong.text) == (422, True)
        assert (await send(desk.ana, f"/keys/{key['id']}/rotation")).status_code == 403

    async def test_a_key_has_the_usual_time_unless_another_is_chosen(self, boss: httpx.AsyncClient) -> None:
        for name, lifetime in (("usual", ""), ("endless", "never")):
            await send(boss, "/keys", name=name, kind="agent", lifetime=lifetime)
        listed = {one["name"]: one["expires_at"] for one in (await boss.get("/api/keys")).json()["items"]}
        assert (listed["usual"] is not None, listed["endless"]) == (True, None)

    async def test_a_persons_key_decides(self, desk: Desk, boss: httpx.AsyncClient) -> None:
        made = await send(boss, "/keys", name="ana's phone", kind="reviewer", user="ana")
        item = await desk.ask()
        body = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
        decided = await desk.house.client(once(made.text)).post(f"/api/inbox/items/{item['id']}/decision", json=body)
        assert decided.status_code == 200, decided.text


class TestPeople:
    async def test_someone_is_added_signs_in_and_is_disabled(self, desk: Desk, boss: httpx.AsyncClient) -> None:
        added = await send(
            boss, "/people", name="Zoë <i>", email="z@example.org", role="viewer", groups="finance, legal"
        )
        assert added.headers["location"] == f"{PATH}/people?done=added"
        page = (await boss.get(f"{PATH}/people")).text
        assert "Zoë &lt;i&gt;" in page
        assert '<span class="tag">finance</span><span class="tag">legal</span>' in page
        linked = await send(boss, "/people/login-link", name="Zoë <i>")
        address, token = once(linked.text).split("#")
        assert address == f"{LOOPBACK}/login"
        assert token not in str(linked.url)
        assert token not in (await boss.get(f"{PATH}/people")).text
        zoe = desk.house.client()
        assert (await zoe.post("/api/session", json={"credential": token})).status_code == 200
        assert (await zoe.get("/inbox")).status_code == 200
        changed = await send(boss, "/people/change", name="Zoë <i>", role="reviewer", groups="legal")
        assert changed.status_code == 303
        [user] = [one for one in (await boss.get("/api/users")).json()["items"] if one["name"] == "Zoë <i>"]
        assert (user["role"], user["groups"]) == ("reviewer", ["legal"])
        await send(boss, "/people/disabling", name="Zoë <i>", disabled="1")
        desk.house.forget()
        assert (await zoe.get("/inbox")).status_code == 401
        assert (await send(boss, "/people/login-link", name="Zoë <i>")).status_code == 409
        await send(boss, "/people/disabling", name="Zoë <i>")
        assert (await send(boss, "/people/login-link", name="Zoë <i>")).status_code == 200

    async def test_mistakes_are_told_and_nothing_typed_is_lost(self, boss: httpx.AsyncClient) -> None:
        taken = await send(boss, "/people", name="ana", email="a@example.org", role="admin", groups="finance")
        assert taken.status_code == 409
        assert "there is a user" in taken.text
        for typed in ('value="ana"', 'value="a@example.org"', 'value="finance"', '<option value="admin" selected>'):
            assert typed in taken.text
        assert (await send(boss, "/people", name="x", role="king")).status_code == 422
        assert (await send(boss, "/people/change", name="nobody", role="viewer")).status_code == 404
        myself = await send(boss, "/people/disabling", name="boss", disabled="1")
        assert (myself.status_code, "cannot disable yourself" in myself.text) == (422, True)


class TestNotifications:
    async def test_what_failed_is_shown_and_sent_again(self, desk: Desk, boss: httpx.AsyncClient) -> None:
        assert "No failed deliveries." in (await desk.ana.get(f"{PATH}/notifications")).text
        item = await desk.raised("Shall I?")
        await desk.decide(item["id"], "respond", **{"a0.message": "yes"})
        await desk.change("UPDATE deliveries SET status = 'failed', failure = '<gone>', due_at = NULL, attempts = 9")
        page = (await desk.ana.get(f"{PATH}/notifications")).text
        assert "&lt;gone&gt;" in page
        assert f'href="/inbox/{item["id"]}"' in page
        found = re.search(rf'action="({PATH}/notifications/[^"]*/retry)"', page)
        assert found
        assert (await desk.ana.post(found[1], headers=FROM_HERE)).status_code == 303
        again = await desk.ana.post(found[1], headers=FROM_HERE)
        assert (again.status_code, "only a failed delivery can be retried" in again.text) == (409, True)

    async def test_the_signing_secret_is_asked_for(self, desk: Desk, boss: httpx.AsyncClient) -> None:
        desk.house.services.deliveries._secret = lambda: b"x" * 32
        assert "whsec_" not in (await boss.get(f"{PATH}/notifications")).text
        shown = await send(boss, "/notifications/secret")
        assert once(shown.text) == (await boss.get("/api/webhooks/secret")).json()["secret"]
        assert (await send(desk.ana, "/notifications/secret")).status_code == 403
        assert "Signing secret" not in (await desk.ana.get(f"{PATH}/notifications")).text


async def test_who_may_not_is_told_and_no_page_elsewhere_may(desk: Desk, boss: httpx.AsyncClient) -> None:
    for below in ("/keys", "/people"):
        looked = await desk.ana.get(f"{PATH}{below}")
        assert (looked.status_code, "You need the scope admin" in looked.text) == (403, True)
    forms = ("/keys", "/keys/x/revocation", "/people", "/people/change", "/people/disabling", "/people/login-link")
    typed = {"name": "ana", "kind": "agent", "role": "admin"}
    for below in (*forms, "/notifications/x/retry", "/notifications/secret"):
        evil = await boss.post(f"{PATH}{below}", data=typed, headers={"origin": "https://evil.example"})
        assert evil.status_code == 403, below
    for below in forms:
        assert (await send(desk.ana, below, **typed)).status_code == 403, below
    [ana] = [one for one in (await boss.get("/api/users")).json()["items"] if one["name"] == "ana"]
    assert ana["role"] == "reviewer"


async def test_the_pages_are_quiet_and_fit(server: Server, link: str, quiet_page: Page) -> None:
    await quiet_page.goto(link)
    await quiet_page.wait_for_url("**/inbox")
    for below, heading in (
        ("", "Deployments"),
        ("/keys", "API keys"),
        ("/people", "People"),
        ("/notifications", "Not delivered"),
    ):
        await quiet_page.goto(f"{server.url}{PATH}{below}")
        await expect(quiet_page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        for summary in await quiet_page.get_by_role("main").locator("summary").all():
            await summary.click()
        for width in (1280, 390, 320):
            await quiet_page.set_viewport_size({"width": width, "height": 800})
            assert await quiet_page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{below} {width}"


async def test_a_key_is_made_without_scripts(server: Server, browser: Browser) -> None:
    async with await browser.new_context(java_script_enabled=False, base_url=server.url) as context:
        page = await context.new_page()
        key = server.said["reviewer key"].split()[0]
        await page.request.post("/api/session", data={"credential": key}, headers={"origin": server.url})
        await page.goto(f"{PATH}/keys")
        await page.get_by_text("Create a key").first.click()
        await page.get_by_label("Name").fill("from the browser")
        await page.get_by_role("button", name="Create a key").click()
        await expect(page.locator("[role=status]:not(#said)")).to_contain_text("asnt_agent_")
        assert page.url == f"{server.url}{PATH}/keys"


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_can_be_read(server: Server, browser: Browser, scheme: Literal["light", "dark"]) -> None:
    async with await browser.new_context(color_scheme=scheme, base_url=server.url) as context:
        page = await context.new_page()
        key = server.said["reviewer key"].split()[0]
        await page.request.post("/api/session", data={"credential": key}, headers={"origin": server.url})
        below = ("", "/keys", "/people", "/notifications")
        for path in (*(f"{PATH}{one}" for one in below), "/inbox/policies", "/inbox/audit", "/inbox/inboxes/new"):
            await page.goto(path)
            assert await page.evaluate(CONTRAST) == [], path
