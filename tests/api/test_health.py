"""`GET /ok`, for load balancers."""

import asyncio

import pytest

from assent.surfaces.api.health import Probe
from tests.api.house import Builder, House


@pytest.mark.parametrize("query", ["", "?check_db=1"])
async def test_ok_answers_without_a_key(house: House, query: str) -> None:
    response = await house.client().get(f"/ok{query}")
    assert (response.status_code, response.json()) == (200, {"ok": True, "services": {}})


@pytest.mark.promise("P12")
async def test_ok_is_503_when_the_database_does_not_answer(own_house: House) -> None:
    await own_house.services.store.close()
    assert (await own_house.client().get("/ok")).status_code == 200
    response = await own_house.client().get("/ok?check_db=1")
    assert (response.status_code, response.json()["code"]) == (503, "unavailable")
    assert response.headers["retry-after"]


async def test_valid_key_without_a_database_is_503(own_house: House) -> None:
    secret = await own_house.key()
    await own_house.services.store.close()
    assert (await own_house.client(secret).get("/api/me")).status_code == 503


async def test_database_check_counts_as_an_anonymous_request(build: Builder) -> None:
    house = await build(rate_limit_anonymous=5)
    client = house.client(peer="10.1.1.1")
    assert [(await client.get("/ok?check_db=1")).status_code for _ in range(20)][-1] == 429
    assert {(await client.get("/ok")).status_code for _ in range(20)} == {200}


async def test_concurrent_callers_share_one_database_check() -> None:
    store = CountingStore()
    probe = Probe(store)  # type: ignore[arg-type]
    asked = [asyncio.create_task(probe.answers()) for _ in range(10)]
    await asyncio.sleep(0)
    asked[0].cancel()
    await asyncio.sleep(0)
    store.go.set()
    await asyncio.gather(*asked[1:])
    assert store.looks == 1
    await probe.answers()
    assert store.looks == 2


class CountingStore:
    def __init__(self) -> None:
        self.looks, self.go = 0, asyncio.Event()

    async def read(self, *_: object) -> None:
        self.looks += 1
        await self.go.wait()


async def test_the_description_of_the_api_is_encoded_once_and_not_sent_again(own_house: House) -> None:
    client = own_house.client()
    first, second = await client.get("/openapi.json"), await client.get("/openapi.json")
    assert first.json()["paths"]["/ok"]
    assert int(first.headers["content-length"]) == len(first.content)
    assert first.headers["etag"] == second.headers["etag"]
    known = await client.get("/openapi.json", headers={"if-none-match": f'"other", W/{first.headers["etag"]}'})
    assert (known.status_code, known.content) == (304, b"")
    own_house.app.openapi_schema = {"made": "anew"}
    assert (await client.get("/openapi.json")).content == first.content
