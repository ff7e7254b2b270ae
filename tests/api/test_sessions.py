"""Signing in: one-time links, reviewer keys, the session cookie and what it is proof against."""

import asyncio
from datetime import timedelta
from http.cookies import SimpleCookie
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from assent.identity.model.access import Role, operator
from assent.settings import Mode
from assent.surfaces.http import authentication
from tests.api.house import LOOPBACK, SESSION, Builder, House

FORM = {"content-type": "application/x-www-form-urlencoded"}


async def sign_in(client: httpx.AsyncClient, credential: str, **kwargs: object) -> httpx.Response:
    return await client.post("/api/session", json={"credential": credential}, **kwargs)  # type: ignore[arg-type]


def cookie(response: httpx.Response) -> dict[str, object]:
    (morsel,) = SimpleCookie(response.headers["set-cookie"]).values()
    return {"name": morsel.key, **{flag: morsel[flag] for flag in ("httponly", "samesite", "secure", "path", "domain")}}


class TestLink:
    async def test_link_signs_its_person_in_once(self, house: House) -> None:
        await house.person("ana")
        token = await house.link("ana")
        response = await sign_in(house.client(), token)
        assert (response.status_code, response.json()["name"]) == (200, "ana")
        again = await sign_in(house.client(), token)
        assert (again.status_code, again.json()["code"]) == (401, "unauthenticated")
        assert "set-cookie" not in again.headers

    async def test_concurrent_uses_of_a_link_sign_in_once(self, house: House) -> None:
        await house.person("ana")
        token = await house.link("ana")
        answers = await asyncio.gather(*(sign_in(house.client(), token) for _ in range(16)))
        assert sorted(answer.status_code for answer in answers) == [200] + [401] * 15

    async def test_link_expires_after_fifteen_minutes(self, house: House) -> None:
        await house.person("ana")
        early, late = await house.link("ana"), await house.link("ana")
        house.pass_time(timedelta(minutes=14, seconds=59))
        assert (await sign_in(house.client(), early)).status_code == 200
        house.pass_time(timedelta(seconds=1))
        assert (await sign_in(house.client(), late)).status_code == 401

    async def test_link_of_a_disabled_person_is_refused(self, house: House) -> None:
        await house.person("ana")
        token = await house.link("ana")
        for disabled in (True, False):
            await house.services.users.change(operator(), "ana", disabled=disabled)
        assert (await sign_in(house.client(), token)).status_code == 401

    @pytest.mark.parametrize("credential", ["login_guess", "x", "asnt_reviewer_guess", "session_guess"])
    async def test_guessed_link_is_refused(self, house: House, credential: str) -> None:
        assert (await sign_in(house.client(), credential)).status_code == 401

    async def test_link_is_not_accepted_as_a_credential(self, house: House) -> None:
        await house.person("ana")
        token = await house.link("ana")
        assert (await house.client(token).get("/api/me")).status_code == 401
        assert (await house.client(session=token).get("/api/me")).status_code == 401


class TestCookie:
    async def test_cookie_is_http_only_and_same_site(self, house: House) -> None:
        await house.person("ana")
        response = await sign_in(house.client(), await house.link("ana"))
        assert cookie(response) == {
            "name": SESSION,
            "httponly": True,
            "samesite": "lax",
            "secure": "",
            "path": "/",
            "domain": "",
        }

    async def test_cookie_is_secure_on_https(self, build: Builder) -> None:
        house = await build(allowed_hosts=["assent.example"])
        await house.person("ana")
        response = await sign_in(house.client(url="https://assent.example"), await house.link("ana"))
        assert cookie(response)["secure"] is True
        assert cookie(response)["name"] == "assent_session"

    async def test_cookie_of_another_port_is_not_changed(self, house: House) -> None:
        """Browsers send a cookie to every port of a host: two servers on one machine would sign each other's out."""
        await house.person("ana")
        browser = house.client()
        for url in ("http://127.0.0.1:2024", "http://127.0.0.1:8002"):
            await browser.post(f"{url}/api/session", json={"credential": await house.link("ana")})
        assert set(browser.cookies) == {"assent_session_2024", "assent_session_8002"}
        await browser.delete("http://127.0.0.1:8002/api/session")
        assert (await browser.get("http://127.0.0.1:2024/api/me")).status_code == 200
        assert (await browser.get("http://127.0.0.1:8002/api/me")).status_code == 401

    async def test_cookie_authenticates_its_person(self, house: House) -> None:
        browser = await house.signed_in("ana", Role.ADMIN)
        me = (await browser.get("/api/me")).json()
        assert (me["kind"], me["name"]) == ("reviewer", "ana")
        assert (await browser.post("/api/users", json={"name": "bob"})).status_code == 201

    async def test_cookie_is_refused_after_sign_out(self, house: House) -> None:
        browser = await house.signed_in()
        stolen = house.client(session=browser.cookies[SESSION])
        assert (await browser.delete("/api/session")).status_code == 204
        assert SESSION not in browser.cookies
        assert (await stolen.get("/api/me")).status_code == 401

    async def test_cookie_is_refused_after_its_lifetime(self, build: Builder) -> None:
        house = await build(session_lifetime=timedelta(hours=1))
        browser = await house.signed_in()
        house.pass_time(timedelta(minutes=59))
        assert (await browser.get("/api/me")).status_code == 200
        house.pass_time(timedelta(minutes=1))
        assert (await browser.get("/api/me")).status_code == 401

    async def test_cookie_of_a_disabled_person_is_refused(self, house: House) -> None:
        for change in ("disable", "erase"):
            browser = await house.signed_in(change)
            if change == "disable":
                await house.services.users.change(operator(), change, disabled=True)
            else:
                await house.services.users.erase(operator(), change)
            assert (await browser.get("/api/me")).status_code == 401

    async def test_cookie_follows_the_current_role(self, house: House) -> None:
        browser = await house.signed_in("ana", Role.ADMIN)
        await house.services.users.change(operator(), "ana", role=Role.VIEWER)
        assert (await browser.get("/api/me")).json()["scopes"] == ["items:read"]


class TestReviewerKey:
    """Typed into the sign-in page instead of a link."""

    async def test_reviewer_key_signs_its_person_in(self, house: House) -> None:
        browser = house.client()
        assert (await sign_in(browser, await house.person("ana"))).json()["name"] == "ana"
        assert (await browser.get("/api/me")).json()["name"] == "ana"

    @pytest.mark.promise("P10")
    async def test_reviewer_key_with_some_scopes_does_not_open_a_full_session(self, house: House) -> None:
        await house.person("ana", Role.ADMIN)
        narrow = await house.key_of("ana", "items:read")
        assert (await house.client(narrow).get("/api/me")).json()["scopes"] == ["items:read"]
        response = await sign_in(house.client(), narrow)
        assert response.status_code == 401
        assert "set-cookie" not in response.headers

    async def test_revoked_reviewer_key_ends_its_sessions(self, house: House) -> None:
        admin, browser = await house.admin(), house.client()
        await sign_in(browser, await house.person("ana"))
        (key,) = [key for key in (await admin.get("/api/keys")).json()["items"] if key["user"] == "ana"]
        await admin.delete(f"/api/keys/{key['id']}")
        assert (await browser.get("/api/me")).status_code == 401

    async def test_expired_reviewer_key_ends_its_sessions(self, house: House) -> None:
        await house.person("ana")
        browser = house.client()
        await sign_in(browser, await house.key_of("ana", lifetime=timedelta(hours=1)))
        house.pass_time(timedelta(minutes=59))
        assert (await browser.get("/api/me")).status_code == 200
        house.pass_time(timedelta(minutes=1))
        assert (await browser.get("/api/me")).status_code == 401


class TestOrigin:
    """A cookie travels by itself, so what it changes must come from a page of ours."""

    FOREIGN = (
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    )

    @pytest.mark.parametrize("headers", FOREIGN)
    @pytest.mark.parametrize("mode", [Mode.DEV, Mode.SERVE])
    async def test_change_from_another_origin_is_refused(
        self, build: Builder, mode: Mode, headers: dict[str, str]
    ) -> None:
        house = await build(mode)
        browser = await house.signed_in("ana", Role.ADMIN)
        response = await browser.post("/api/users", json={"name": "eve"}, headers=headers)
        assert (response.status_code, response.json()["code"]) == (403, "origin_refused")

    @pytest.mark.parametrize("headers", [{"origin": LOOPBACK, "sec-fetch-site": "same-origin"}, {}])
    async def test_change_from_the_own_origin_is_accepted(self, house: House, headers: dict[str, str]) -> None:
        browser = await house.signed_in("ana", Role.ADMIN)
        assert (await browser.post("/api/users", json={"name": "bob"}, headers=headers)).status_code == 201

    async def test_control_without_the_check_another_origin_succeeds(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(authentication, "require_same_origin", lambda _: None)
        browser = await house.signed_in("ana", Role.ADMIN)
        response = await browser.post("/api/users", json={"name": "eve"}, headers=self.FOREIGN[0])
        assert response.status_code == 201

    @pytest.mark.parametrize(("method", "path"), [("POST", "/login"), ("POST", "/logout"), ("DELETE", "/api/session")])
    async def test_sign_in_and_sign_out_from_another_origin_are_refused(
        self, house: House, method: str, path: str
    ) -> None:
        browser = await house.signed_in()
        response = await browser.request(method, path, headers={"origin": "https://evil.example"})
        assert response.status_code == 403
        assert (await browser.get("/api/me")).status_code == 200

    async def test_request_with_a_key_needs_no_origin(self, build: Builder) -> None:
        house = await build(cors_origins=["https://inbox.example"])
        response = await (await house.admin()).post(
            "/api/users", json={"name": "bob"}, headers={"origin": "https://inbox.example"}
        )
        assert response.status_code == 201


class TestPages:
    async def test_form_signs_in_and_redirects_to_the_next_page(self, house: House) -> None:
        await house.person("ana")
        browser = house.client()
        response = await browser.post("/login", data={"credential": await house.link("ana"), "next": "/inbox?x=1"})
        assert (response.status_code, response.headers["location"]) == (303, "/inbox?x=1")
        page = await browser.get("/inbox")
        assert page.status_code == 200
        assert "ana" in page.text

    @pytest.mark.parametrize(
        "target",
        [
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
            "\t//evil.example",
            "/\n/evil.example",
            "javascript:alert(1)",
            "evil.example",
            "/..//evil.example",
            "",
        ],
    )
    async def test_redirect_after_sign_in_stays_on_the_own_origin(self, house: House, target: str) -> None:
        await house.person("ana")
        response = await house.client().post("/login", data={"credential": await house.link("ana"), "next": target})
        arrived = urljoin(LOOPBACK, response.headers["location"].replace("\\", "/"))
        assert urlsplit(arrived).netloc == urlsplit(LOOPBACK).netloc
        assert not response.headers["location"].startswith(("//", "/\\"))

    @pytest.mark.parametrize("credential", ["wrong", "", "x" * 501])
    async def test_a_wrong_credential_shows_the_form_again(self, house: House, credential: str) -> None:
        response = await house.client().post("/login", data={"credential": credential, "next": "/inbox"})
        assert response.status_code in (401, 422)
        assert "set-cookie" not in response.headers

    async def test_sign_out_of_an_ended_session_redirects_to_the_form(self, house: House) -> None:
        response = await house.client(session="long-ended").post("/logout")
        assert (response.status_code, response.headers["location"]) == (303, "/login")

    async def test_ended_session_redirects_to_the_form(self, house: House) -> None:
        response = await house.client(session="long-ended").get("/inbox", headers={"accept": "text/html"})
        assert (response.status_code, response.headers["location"]) == (303, "/login?next=/inbox")

    async def test_root_redirects_browsers_to_the_inbox_and_not_programs(self, house: House) -> None:
        page = await house.client().get("/", headers={"accept": "text/html,*/*"})
        assert (page.status_code, page.headers["location"]) == (303, "/inbox")
        assert (await house.client().get("/")).json() == {"ok": True, "services": {}}

    async def test_langgraph_paths_answer_json_also_to_a_browser(self, house: House) -> None:
        response = await house.client().get("/threads/none", headers={"accept": "text/html"})
        assert (response.status_code, response.headers["content-type"]) == (401, "application/json")

    @pytest.mark.promise("P11")
    async def test_names_of_people_are_escaped_in_pages(self, house: House) -> None:
        browser = await house.signed_in("<img src=x onerror=alert(1)>")
        page = await browser.get("/inbox")
        assert "<img src=x" not in page.text
        assert "&lt;img src=x" in page.text

    async def test_pages_forbid_foreign_scripts_and_frames(self, house: House) -> None:
        page = await house.client().get("/login")
        policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["referrer-policy"] == "same-origin"
