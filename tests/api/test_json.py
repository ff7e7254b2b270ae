"""Bodies are read strictly: what two readers could read differently is refused, and numbers stay exact."""

import json

import httpx
import pytest
from fastapi import Request

from assent.identity.model.access import Role
from assent.surfaces.http.routing import router
from tests.api.house import Builder, House

JSON = {"content-type": "application/json"}
DEEP = '{"name":' * 65 + "1" + "}" * 65


async def post(house: House, text: str | bytes, content_type: str = "application/json") -> httpx.Response:
    admin = await house.admin()
    return await admin.post("/api/users", content=text, headers={"content-type": content_type})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"name":"ana","name":"eve"}', "name: this key is a duplicate"),
        ('{"name":"ana","email":NaN}', "email: nan is not a JSON number"),
        ('{"name":"ana","email":-Infinity}', "email: -inf is not a JSON number"),
        ('{"name":"ana","email":1e999}', "email: inf is not a JSON number"),
        ('{"name":"\\ud800"}', "name: a lone surrogate, which is not a character"),
        ('{"\\udfff":1}', "a lone surrogate, which is not a character"),
        (DEEP, "nested deeper than 64"),
        ("[" * 100_000, "nested far too deep"),
        ('{"name":' + "9" * 5000 + "}", "digits"),
        ('{"name":"ana",}', "line 1, column"),
        (b'{"name":"\xff"}', "not UTF-8 text"),
        ("nothing", "line 1, column 1"),
    ],
)
async def test_ambiguous_json_is_refused_with_its_position(house: House, text: str | bytes, why: str) -> None:
    response = await post(house, text)
    assert (response.status_code, response.json()["code"]) == (422, "invalid_json")
    assert why in response.json()["detail"]


async def test_control_unambiguous_json_is_accepted(house: House) -> None:
    response = await post(house, '{"name":"\\ud83d\\ude00","email":null}')
    assert (response.status_code, response.json()["name"]) == (201, "😀")


@pytest.mark.parametrize("content_type", ["application/merge-patch+json", "application/json; charset=utf-8"])
async def test_every_kind_of_json_is_read_in_the_same_way(house: House, content_type: str) -> None:
    response = await post(house, '{"name":"ana","name":"eve"}', content_type)
    assert response.json()["code"] == "invalid_json"


UNDECLARED = ["text/plain", "application/x-www-form-urlencoded", ""]


@pytest.mark.parametrize("content_type", UNDECLARED)
async def test_with_a_cookie_a_body_that_is_not_declared_as_json_is_not_read(house: House, content_type: str) -> None:
    """These types need no preflight, so a page elsewhere could send them."""
    admin = await house.signed_in("ana", Role.ADMIN)
    sent, headers = b'{"name":"eve","role":"admin"}', {"content-type": content_type}
    response = await admin.post("/api/users", content=sent, headers=headers)
    assert (response.status_code, response.json()["code"]) == (422, "invalid_json")
    assert "application/json" in response.json()["hint"]


@pytest.mark.parametrize("path", ["/threads", "/assistants/search", "/runs"])
@pytest.mark.parametrize("content_type", UNDECLARED)
async def test_without_a_key_a_body_that_is_not_declared_as_json_is_not_read(
    dev_house: House, content_type: str, path: str
) -> None:
    response = await dev_house.client().post(path, content=b"{}", headers={"content-type": content_type})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_json")
    assert "application/json" in response.json()["hint"]


@pytest.mark.parametrize("content_type", UNDECLARED)
async def test_control_with_a_key_an_undeclared_body_is_read(house: House, content_type: str) -> None:
    assert (await post(house, '{"name":"eve"}', content_type)).status_code == 201


async def test_more_values_than_the_setting_allows_are_refused_before_they_are_read(build: Builder) -> None:
    house = await build(max_body_values=1000)
    agent = house.client(await house.key(), headers=JSON)
    for body in ("[" + "[]," * 1000 + "[]]", '{"metadata":{"a":[' + "1," * 2000 + "1]}}", "[" + '"",' * 1000 + '""]'):
        response = await agent.post("/threads", content=body)
        assert (response.status_code, response.json()["code"]) == (413, "too_large")
        assert "max_body_values" in response.json()["hint"]


async def test_control_a_string_that_looks_like_many_values_is_read(build: Builder) -> None:
    house = await build(max_body_values=1000)
    agent = house.client(await house.key(), headers=JSON)
    text = 'a,"[{\\' * 5000
    response = await agent.post("/threads", content=json.dumps({"metadata": {"text": text}}))
    assert response.json()["metadata"]["text"] == text


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


async def test_unknown_field_is_refused(house: House) -> None:
    response = await post(house, '{"name":"ana","rolle":"admin"}')
    assert (response.status_code, response.json()["errors"][0]["path"]) == (422, "rolle")


async def test_an_empty_body_is_a_missing_one(house: House) -> None:
    assert (await post(house, "")).json()["code"] == "invalid_request"
