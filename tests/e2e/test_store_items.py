"""`client.store` of the stock Python SDK, every method, with and without await."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient
from langgraph_sdk.errors import BadRequestError, UnprocessableEntityError

pytestmark = pytest.mark.promise("SERVE-01")


def label() -> str:
    """A namespace of the test's own: the server is shared."""
    return uuid4().hex


async def test_items_are_put_read_found_listed_and_deleted(client: LangGraphClient) -> None:
    own = label()
    await client.store.put_item([own, "docs"], "first", {"title": "One", "score": 1})
    await client.store.put_item([own, "docs"], key="second", value={"title": "Two", "score": 2.5}, index=False, ttl=5)
    await client.store.put_item([own, "other"], "third", {"title": "Three"}, index=["title"])
    item: Any = await client.store.get_item([own, "docs"], "first")
    assert (item["namespace"], item["key"], item["value"]) == ([own, "docs"], "first", {"title": "One", "score": 1})
    assert item["created_at"] == item["updated_at"]
    assert await client.store.get_item([own, "docs"], "first", refresh_ttl=True) == item
    assert await client.store.get_item([own, "docs"], "nothing") is None
    everything = await client.store.search_items([own])
    assert [each["key"] for each in everything["items"]] == ["third", "second", "first"]
    assert {each["score"] for each in everything["items"]} == {None}
    page = await client.store.search_items([own], limit=1, offset=1, refresh_ttl=False)
    assert [each["key"] for each in page["items"]] == ["second"]
    better: Any = await client.store.search_items([own, "docs"], filter={"score": {"$gt": 1}}, query="words")
    assert [each["key"] for each in better["items"]] == ["second"]
    assert await client.store.list_namespaces([own]) == {"namespaces": [[own, "docs"], [own, "other"]]}
    assert await client.store.list_namespaces(suffix=["other"], prefix=[own]) == {"namespaces": [[own, "other"]]}
    assert await client.store.list_namespaces([own], max_depth=1, limit=5) == {"namespaces": [[own]]}
    await client.store.delete_item([own, "docs"], "first")
    await client.store.delete_item([own, "docs"], key="first")
    assert await client.store.get_item([own, "docs"], "first") is None


async def test_wrong_namespaces_raise_the_errors_of_the_sdk(client: LangGraphClient) -> None:
    with pytest.raises(BadRequestError, match="cannot be empty"):
        await client.store.put_item([], "k", {})
    with pytest.raises(UnprocessableEntityError, match="non-empty"):
        await client.store.put_item([""], "k", {})
    with pytest.raises(UnprocessableEntityError, match="without periods"):
        await client.store.search_items(["a.b"])


def test_items_without_await(sync_client: SyncLangGraphClient) -> None:
    own = label()
    sync_client.store.put_item([own], "k", {"n": 1})
    sync_client.store.put_item([own], "k", {"n": 2}, ttl=1)
    item: Any = sync_client.store.get_item([own], "k", refresh_ttl=False)
    assert item["value"] == {"n": 2}
    assert [each["key"] for each in sync_client.store.search_items([own])["items"]] == ["k"]
    assert sync_client.store.list_namespaces(prefix=[own]) == {"namespaces": [[own]]}
    sync_client.store.delete_item([own], "k")
    assert sync_client.store.get_item([own], "k") is None
