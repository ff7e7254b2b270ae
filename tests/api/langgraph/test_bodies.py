"""How the LangGraph API reads a body: strictly, and whatever is not JSON is one kind of 422."""

import httpx
import pytest

from tests.contract.stores import only_sqlite

pytestmark = only_sqlite

NOT_JSON = "Invalid JSON in request body"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   ",
        b"{",
        b'{"graph_id": "echo",}',
        b'{"graph_id": "echo", "graph_id": "slow"}',
        b'{"graph_id": "echo", "metadata": {"n": NaN}}',
        b'{"graph_id": "echo", "metadata": {"n": 1e999}}',
        b'{"graph_id": "echo", "name": "\\ud800"}',
        b'{"graph_id": "echo", "metadata": ' + b'{"a":' * 70 + b"1" + b"}" * 71,
        b"\xff\xfe",
    ],
)
async def test_what_is_not_json_is_refused_with_an_explanation_beside_it(
    client: httpx.AsyncClient, content: bytes
) -> None:
    response = await client.post("/assistants", content=content, headers=JSON)
    assert (response.status_code, response.json()["detail"]) == (422, NOT_JSON)
    assert response.json()["code"] == "invalid_json"
    assert response.json()["hint"]


async def test_a_body_of_another_type_is_not_read(client: httpx.AsyncClient) -> None:
    content = b'{"graph_id": "echo"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        response = await client.post("/assistants", content=content, headers={"content-type": kind})
        assert (response.status_code, response.json()["detail"]) == (422, NOT_JSON)
        assert response.json()["hint"] == "send it as application/json"


async def test_control_the_same_body_is_read_with_its_type_or_without_any(client: httpx.AsyncClient) -> None:
    content = b'{"graph_id": "echo"}'
    for headers in (JSON, {"content-type": "application/json; charset=utf-8"}, {}):
        response = await client.post("/assistants", content=content, headers=headers)
        assert response.status_code == 200, response.text


async def test_numbers_stay_exact(client: httpx.AsyncClient) -> None:
    exact = b'{"big":123456789012345678901234567890,"large":9007199254740993,"real":598.0}'
    made = await client.post("/assistants", content=b'{"graph_id":"echo","metadata":' + exact + b"}", headers=JSON)
    assert exact in made.content
    found = await client.get(f"/assistants/{made.json()['assistant_id']}")
    assert exact in found.content


async def test_a_backslash_and_u0000_are_only_text(client: httpx.AsyncClient) -> None:
    made = await client.post("/assistants", json={"graph_id": "echo", "name": "\\u0000"})
    assert (made.status_code, made.json()["name"]) == (200, "\\u0000")
    for body in ({"metadata": {"a": ["\0"]}}, {"metadata": {"\0": 1}}, {"metadata": {"a": {"b": "x\0y"}}}):
        refused = await client.post("/assistants", json={"graph_id": "echo", **body})
        assert refused.status_code == 422
        assert "U+0000" in refused.json()["detail"]
