"""`GET /ok`, for load balancers."""

import pytest

from tests.api.house import House


@pytest.mark.parametrize("query", ["", "?check_db=1"])
async def test_ok_answers_without_a_key(house: House, query: str) -> None:
    response = await house.client().get(f"/ok{query}")
    assert (response.status_code, response.json()) == (200, {"ok": True, "services": {}})


@pytest.mark.promise("P12")
async def test_ok_says_when_the_database_does_not_answer(own_house: House) -> None:
    await own_house.services.store.close()
    assert (await own_house.client().get("/ok")).status_code == 200
    response = await own_house.client().get("/ok?check_db=1")
    assert (response.status_code, response.json()["code"]) == (503, "unavailable")
    assert response.headers["retry-after"]


async def test_without_its_database_it_lets_nobody_in(own_house: House) -> None:
    secret = await own_house.key()
    await own_house.services.store.close()
    assert (await own_house.client(secret).get("/api/me")).status_code == 503
