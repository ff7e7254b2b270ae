"""Bodies are read strictly: what two readers could read differently is refused, and numbers stay exact."""

import json

import httpx
import pytest
from fastapi import Request

from assent.http.routing import router
from tests.api.house import House

JSON = {"content-type": "application/json"}
DEEP = '{"name":' * 65 + "1" + "}" * 65


async def post(house: House, text: str | bytes, content_type: str = "application/json") -> httpx.Response:
    admin = await house.admin()
    return await admin.post("/api/users", content=text, headers={"content-type": content_type})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"name":"ana","name":"eve"}', "name: this key comes twice"),
        ('{"name":"ana","email":NaN}', "email: nan is not a JSON number"),
        ('{"name":"ana","email":-Infinity}', "email: -inf is not a JSON number"),
        ('{"name":"ana","email":1e999}', "email: inf is not a JSON number"),
        ('{"name":"\\ud800"}', "name: a lone surrogate, which is no character"),
        ('{"\\udfff":1}', "a lone surrogate, which is no character"),
        (DEEP, "nested deeper than 64"),
        ("[" * 100_000, "nested far too deep"),
        ('{"name":' + "9" * 5000 + "}", "digits"),
        ('{"name":"ana",}', "line 1, column"),
        (b'{"name":"\xff"}', "not UTF-8 text"),
        ("nothing", "line 1, column 1"),
    ],
)
async def test_what_readers_disagree_on_is_refused_and_said_where(house: House, text: str | bytes, why: str) -> None:
    response = await post(house, text)
    assert (response.status_code, response.json()["code"]) == (422, "invalid_json")
    assert why in response.json()["detail"]


async def test_control_what_everyone_reads_alike_is_taken(house: House) -> None:
    response = await post(house, '{"name":"\\ud83d\\ude00","email":null}')
    assert (response.status_code, response.json()["name"]) == (201, "😀")


@pytest.mark.parametrize("content_type", ["application/merge-patch+json", "application/json; charset=utf-8"])
async def test_every_kind_of_json_is_read_in_the_same_way(house: House, content_type: str) -> None:
    response = await post(house, '{"name":"ana","name":"eve"}', content_type)
    assert response.json()["code"] == "invalid_json"


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_form_of_another_site_cannot_pass_for_json(house: House, content_type: str) -> None:
    """These types need no preflight, so a page elsewhere could send them: their body is never read as JSON."""
    response = await post(house, '{"name":"eve","role":"admin"}', content_type)
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


async def test_integers_of_any_size_arrive_exactly(own_house: House) -> None:
    api = router("/api/echo", "echo")

    @api.post("")
    async def echo(request: Request) -> str:
        return str((await request.json())["n"])

    own_house.app.include_router(api)
    client = own_house.client(await own_house.key(), headers=JSON)
    for number in (2**53 + 1, 2**64, 10**30, -(2**63) - 1):
        response = await client.post("/api/echo", content=json.dumps({"n": number}))
        assert response.json() == str(number)


async def test_a_field_that_nobody_knows_is_refused(house: House) -> None:
    response = await post(house, '{"name":"ana","rolle":"admin"}')
    assert (response.status_code, response.json()["errors"][0]["path"]) == (422, "rolle")


async def test_an_empty_body_is_a_missing_one(house: House) -> None:
    assert (await post(house, "")).json()["code"] == "invalid_request"
