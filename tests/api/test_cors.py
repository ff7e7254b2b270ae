"""Which web pages of other origins may call: loopback pages in dev, otherwise only those that are named."""

import httpx
import pytest

from assent.settings import Mode
from tests.api.house import Builder, House

NAMED = "https://inbox.example"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "x-api-key,content-type"}


async def preflight(house: House, origin: str) -> httpx.Response:
    return await house.client().options("/api/keys", headers={**PREFLIGHT, "origin": origin})


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1:5173", "http://[::1]:3000"])
async def test_in_dev_a_page_on_this_machine_may_call(dev_house: House, origin: str) -> None:
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
async def test_any_other_page_may_not(dev_house: House, origin: str) -> None:
    assert "access-control-allow-origin" not in (await preflight(dev_house, origin)).headers
    answer = await dev_house.client().get("/api/me", headers={"origin": origin})
    assert answer.status_code == 401
    assert "access-control-allow-origin" not in answer.headers


async def test_in_production_even_a_page_on_this_machine_must_be_named(build: Builder) -> None:
    house = await build(cors_origins=[NAMED])
    assert "access-control-allow-origin" not in (await preflight(house, "http://localhost:3000")).headers
    assert (await preflight(house, NAMED)).headers["access-control-allow-origin"] == NAMED


async def test_a_named_page_needs_no_key_in_dev_and_one_in_production(build: Builder) -> None:
    for mode, status in ((Mode.DEV, 200), (Mode.SERVE, 401)):
        house = await build(mode, cors_origins=[NAMED])
        assert (await house.client().get("/api/me", headers={"origin": NAMED})).status_code == status


@pytest.mark.parametrize("origins", [["*"], [NAMED], ["*", NAMED]])
async def test_credentials_never_travel_across_origins(build: Builder, origins: list[str]) -> None:
    house = await build(Mode.DEV, cors_origins=origins)
    browser = await house.signed_in()
    for response in (
        await preflight(house, NAMED),
        await browser.get("/api/me", headers={"origin": NAMED}),
        await house.client().get("/ok", headers={"origin": NAMED}),
    ):
        assert response.headers["access-control-allow-origin"] in ("*", NAMED)
        assert "access-control-allow-credentials" not in response.headers


async def test_a_star_opens_no_keyless_door(build: Builder) -> None:
    house = await build(Mode.DEV, cors_origins=["*"])
    assert (await house.client().get("/api/me", headers={"origin": "https://evil.example"})).status_code == 401


async def test_pages_may_read_what_clients_rely_on(dev_house: House) -> None:
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
