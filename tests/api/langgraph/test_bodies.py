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
async def test_invalid_json_is_422_with_an_explanation(client: httpx.AsyncClient, content: bytes) -> None:
    response = await client.post("/assistants", content=content, headers=JSON)
    assert (response.status_code, response.json()["detail"]) == (422, NOT_JSON)
    assert response.json()["code"] == "invalid_json"
    assert response.json()["hint"]


async def test_body_with_a_key_is_read_with_any_content_type(client: httpx.AsyncClient) -> None:
    content = b'{"graph_id": "echo"}'
    types = ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8")
    for headers in (JSON, *({"content-type": kind} for kind in types), {}):
        response = await client.post("/assistants", content=content, headers=headers)
        assert response.status_code == 200, response.text


async def test_numbers_stay_exact(client: httpx.AsyncClient) -> None:
    exact = b'{"big":123456789012345678901234567890,"large":9007199254740993,"real":598.0}'
    made = await client.post("/assistants", content=b'{"graph_id":"echo","metadata":' + exact + b"}", headers=JSON)
    assert exact in made.content
    response = await client.get(f"/assistants/{made.json()['assistant_id']}")
    assert exact in response.content


async def test_escaped_backslash_before_u0000_is_text(client: httpx.AsyncClient) -> None:
    made = await client.post("/assistants", json={"graph_id": "echo", "name": "\\u0000"})
    assert (made.status_code, made.json()["name"]) == (200, "\\u0000")
    for body in ({"metadata": {"a": ["\0"]}}, {"metadata": {"\0": 1}}, {"metadata": {"a": {"b": "x\0y"}}}):
        refused = await client.post("/assistants", json={"graph_id": "echo", **body})
        assert refused.status_code == 422
        assert "U+0000" in refused.json()["detail"]
