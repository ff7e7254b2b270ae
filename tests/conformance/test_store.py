"""The store API on LangGraph's own server and on ours: the same answers, and the same statuses for what is refused.

The differences, each on purpose: a refusal is always JSON with a `detail`, also where theirs is plain text; a negative
`limit` or `offset`, U+0000 in a text, and a lifetime below zero are refused; a search without a prefix, and a
comparison with a value of another type, work instead of failing with 500; an operator that does not exist is 422, not
400; items are found newest first, as LangGraph documents it.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from tests.conformance.conftest import Pair
from tests.conformance.test_runs import same

Json = dict[str, Any]


def http(client: LangGraphClient) -> httpx.AsyncClient:
    return client.http.client


async def answer(client: LangGraphClient, method: str, path: str, **sent: Any) -> tuple[int, Any]:
    response = await http(client).request(method, path, **sent)
    if response.status_code >= 400:
        return response.status_code, None
    return response.status_code, response.json() if response.content else None


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"namespace": []},
        {"namespace": ["langgraph"]},
        {"namespace": ["a.b"]},
        {"namespace": [""]},
        {"namespace": "a"},
        {"namespace": [1]},
        {"namespace": None},
        {"key": ""},
        {"key": 1},
        {"key": None},
        {"value": []},
        {"value": None},
        {"value": "x"},
        {"ttl": 5},
        {"ttl": 0.5},
        {"ttl": None},
        {"ttl": "5"},
        {"index": None},
        {"index": False},
        {"index": True},
        {"index": ["x"]},
        {"index": "x"},
        {"more": 1},
    ],
)
async def test_putting(pair: Pair, change: Json) -> None:
    body = {"namespace": ["put"], "key": "k", "value": {"x": 1}, **change}
    await same(pair, lambda client: answer(client, "PUT", "/store/items", json=body))


@pytest.mark.parametrize(
    "params",
    [
        {"namespace": "n.a", "key": "none"},
        {"namespace": "n.a"},
        {"key": "k"},
        {"namespace": "n..a", "key": "k"},
        {"namespace": "", "key": "k"},
        {"namespace": "n", "key": "k", "refresh_ttl": "true"},
        {"namespace": "n", "key": "k", "refresh_ttl": "maybe"},
    ],
)
async def test_getting(pair: Pair, params: Json) -> None:
    await same(pair, lambda client: answer(client, "GET", "/store/items", params=params))


@pytest.mark.parametrize(
    "body",
    [{"namespace": ["d"], "key": "k"}, {"key": "k"}, {"namespace": ["d"]}, {"namespace": ["d."], "key": "k"}, {}],
)
async def test_deleting(pair: Pair, body: Json) -> None:
    await same(pair, lambda client: answer(client, "DELETE", "/store/items", json=body))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("items/search", {"namespace_prefix": ["none"]}),
        ("items/search", {"namespace_prefix": ["none"], "limit": 0}),
        ("items/search", {"namespace_prefix": ["none"], "limit": 100_000}),
        ("items/search", {"namespace_prefix": ["none"], "limit": "3"}),
        ("items/search", {"namespace_prefix": ["none"], "filter": [1]}),
        ("items/search", {"namespace_prefix": ["none"], "query": 1}),
        ("items/search", {"namespace_prefix": ["none"], "refresh_ttl": "x"}),
        ("items/search", {"namespace_prefix": ["none."]}),
        ("items/search", {"namespace_prefix": "none"}),
        ("namespaces", {"prefix": ["none"]}),
        ("namespaces", {"prefix": ["none"], "limit": 0}),
        ("namespaces", {"prefix": "none"}),
        ("namespaces", {"prefix": ["none."]}),
        ("namespaces", {"suffix": [""]}),
        ("namespaces", {"max_depth": "x"}),
    ],
)
async def test_searching(pair: Pair, path: str, body: Json) -> None:
    await same(pair, lambda client: answer(client, "POST", f"/store/{path}", json=body))


async def test_the_life_of_items(pair: Pair) -> None:
    own = uuid4().hex

    async def lived(client: LangGraphClient) -> list[Any]:
        store = client.store
        for place, key, value in ((["a"], "k", {"n": 1, "s": "x"}), (["a", "b"], "l", {"n": 2}), (["c", "b"], "m", {})):
            await store.put_item([own, *place], key, value)
        seen: list[Any] = [await store.get_item([own, "a"], "k"), await store.get_item([own, "a"], "l")]
        filters: tuple[Json, ...] = ({"n": 1}, {"n": {"$gte": 1}}, {"n": {"$ne": 1}}, {"s": "x", "n": 1}, {"z": None})
        for wanted in filters:
            found = await store.search_items([own, "a"], filter=wanted)
            seen.append(sorted(found["items"], key=lambda item: item["key"]))
        lists: tuple[Json, ...] = ({}, {"suffix": ["b"]}, {"max_depth": 2}, {"limit": 1, "offset": 1})
        seen += [await store.list_namespaces(prefix=[own], **wanted) for wanted in lists]
        seen.append(await store.list_namespaces(prefix=[own, "*", "b"]))
        await store.delete_item([own, "a"], "k")
        return [*seen, (await store.search_items([own, "a"]))["items"]]

    assert len(await same(pair, lived)) == 13
