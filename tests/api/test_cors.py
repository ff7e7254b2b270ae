"""Which web pages of other origins may call: loopback pages in dev, otherwise only those that are named."""

from collections.abc import Mapping

import httpx
import pytest
from starlette.types import Message, Scope

from assent.settings import Mode
from tests.api.house import LOOPBACK, SESSION, Builder, House

NAMED = "https://inbox.example"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "x-api-key,content-type"}


async def preflight(house: House, origin: str) -> httpx.Response:
    return await house.client().options("/api/keys", headers={**PREFLIGHT, "origin": origin})


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1:5173", "http://[::1]:3000"])
async def test_page_on_loopback_may_call_in_dev(dev_house: House, origin: str) -> None:
    response = await preflight(dev_house, origin)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == origin
    assert "x-api-key" in response.headers["access-control-allow-headers"]
    assert {"GET", "POST", "PUT", "PATCH", "DELETE"} <= set(
        response.headers["access-control-allow-methods"].split(", ")
    )
    answer = await dev_house.client().get("/api/me", headers={"origin": origin})
    assert answer.headers["access-control-allow-origin"] == origin


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example:3000",
        "http://localhost:3000.evil.example",
        "http://evil.example/http://localhost:3000",
        "null",
    ],
)
async def test_page_of_another_origin_may_not_call(dev_house: House, origin: str) -> None:
    assert "access-control-allow-origin" not in (await preflight(dev_house, origin)).headers
    answer = await dev_house.client().get("/api/me", headers={"origin": origin})
    assert answer.status_code == 401
    assert "access-control-allow-origin" not in answer.headers


async def test_page_on_loopback_must_be_named_in_production(build: Builder) -> None:
    house = await build(cors_origins=[NAMED])
    assert "access-control-allow-origin" not in (await preflight(house, "http://localhost:3000")).headers
    assert (await preflight(house, NAMED)).headers["access-control-allow-origin"] == NAMED


@pytest.mark.parametrize("mode", [Mode.DEV, Mode.SERVE])
async def test_a_named_page_needs_a_key(build: Builder, mode: Mode) -> None:
    house = await build(mode, cors_origins=[NAMED])
    assert (await house.client().get("/api/me", headers={"origin": NAMED})).status_code == 401
    assert (await house.client(await house.key()).get("/api/me", headers={"origin": NAMED})).status_code == 200


@pytest.mark.parametrize("origin", [NAMED, "http://localhost:3000", "null"])
async def test_cookie_gives_no_access_to_a_page_of_another_origin(build: Builder, origin: str) -> None:
    house = await build(Mode.DEV, cors_origins=[NAMED])
    browser = await house.signed_in()
    for method in ("GET", "POST"):
        response = await browser.request(method, "/api/me", headers={"origin": origin})
        assert (response.status_code, response.json()["code"]) == (403, "origin_refused")
    assert (await browser.get("/api/me", headers={"origin": LOOPBACK})).status_code == 200


class TestWebSocket:
    """Browsers send the cookie with a handshake from any page, and let that page read what comes back."""

    async def handshake(self, house: House, headers: Mapping[str, str]) -> int:
        """The status of the refusal; 101 where it reaches the app."""
        seen: list[Message] = []

        async def receive() -> Message:
            return {"type": "websocket.connect"}

        async def send(message: Message) -> None:
            seen.append(message)

        raw = [(name.encode(), value.encode()) for name, value in {"host": "127.0.0.1:2024", **headers}.items()]
        scope: Scope = {
            "type": "websocket",
            "path": "/inbox",
            "headers": raw,
            "query_string": b"",
            "client": ("127.0.0.1", 40000),
            "extensions": {"websocket.http.response": {}},
        }
        await house.app(scope, receive, send)
        return int(seen[0].get("status", 101))

    @pytest.mark.parametrize("origin", [None, NAMED, "http://localhost:3000", "null", "http://127.0.0.1:2025"])
    async def test_websocket_by_cookie_needs_the_servers_own_origin(self, build: Builder, origin: str | None) -> None:
        house = await build(Mode.DEV, cors_origins=[NAMED])
        cookie = (await house.signed_in()).cookies[SESSION]
        headers = {"cookie": f"{SESSION}={cookie}", **({"origin": origin} if origin else {})}
        assert await self.handshake(house, headers) == 403

    async def test_control_websocket_by_cookie_from_the_own_origin_reaches_the_app(self, house: House) -> None:
        cookie = (await house.signed_in()).cookies[SESSION]
        assert await self.handshake(house, {"cookie": f"{SESSION}={cookie}", "origin": LOOPBACK}) == 101


@pytest.mark.parametrize("origins", [["*"], [NAMED], ["*", NAMED]])
async def test_credentials_are_never_allowed_across_origins(build: Builder, origins: list[str]) -> None:
    house = await build(Mode.DEV, cors_origins=origins)
    browser = await house.signed_in()
    for response in (
        await preflight(house, NAMED),
        await browser.get("/api/me", headers={"origin": NAMED}),
        await house.client().get("/ok", headers={"origin": NAMED}),
    ):
        assert response.headers["access-control-allow-origin"] in ("*", NAMED)
        assert "access-control-allow-credentials" not in response.headers


async def test_wildcard_origin_gives_no_keyless_access(build: Builder) -> None:
    house = await build(Mode.DEV, cors_origins=["*"])
    assert (await house.client().get("/api/me", headers={"origin": "https://evil.example"})).status_code == 401


async def test_pages_may_read_the_headers_that_clients_need(dev_house: House) -> None:
    response = await dev_house.client().get("/ok", headers={"origin": "http://localhost:3000"})
    exposed = set(response.headers["access-control-expose-headers"].split(", "))
    assert exposed == {"Location", "Content-Location", "X-Pagination-Total", "X-Pagination-Next", "X-Request-Id"}


async def test_pages_on_https_may_reach_a_server_on_this_machine(build: Builder) -> None:
    house = await build(Mode.DEV, cors_origins=[NAMED])
    asked = {**PREFLIGHT, "origin": NAMED, "access-control-request-private-network": "true"}
    response = await house.client().options("/api/keys", headers=asked)
    assert response.headers["access-control-allow-private-network"] == "true"


async def test_a_refusal_can_be_read_by_the_page_that_may_call(build: Builder) -> None:
    house = await build(cors_origins=[NAMED])
    response = await house.client().get("/api/keys", headers={"origin": NAMED})
    assert response.status_code == 401
    assert response.headers["access-control-allow-origin"] == NAMED
