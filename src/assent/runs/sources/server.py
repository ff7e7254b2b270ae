"""A running LangGraph server as a source, read through its HTTP API with LangGraph's client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError, LangGraphError

from assent.errors import AssentError, Unauthenticated, Unavailable
from assent.runs.sources.restore import restored
from assent.runs.sources.source import ForeignAssistant, ForeignThread, Json, Past
from assent.threads.rows.memory.items import Put

if TYPE_CHECKING:
    from assent.runs.project.graphs import AnyPregel

_PAGE = 100
_NO_ACCESS = (401, 403)
_LATER = (429, 502, 503, 504)


class ServerSource:
    def __init__(self, url: str, api_key: str | None) -> None:
        self.name = str(httpx.URL(url).copy_with(username=None, password=None, query=None))
        self._client = get_client(url=url, api_key=api_key)

    async def assistants(self) -> AsyncIterator[ForeignAssistant]:
        search = self._client.assistants.search
        for row in await _all(lambda read: search(limit=_PAGE, offset=len(read), sort_by="created_at")):
            versions = await _all(partial(self._versions, row["assistant_id"]))
            ordered = sorted(versions, key=lambda version: int(version["version"]))
            yield ForeignAssistant(row["assistant_id"], row["graph_id"], row["version"], ordered)

    async def _versions(self, assistant_id: str, read: list[Any]) -> list[Any]:
        return list(await self._client.assistants.get_versions(assistant_id, limit=_PAGE, offset=len(read)))

    async def memories(self) -> AsyncIterator[Put]:
        """A search also returns items of nested namespaces, which are read separately."""
        for namespace in await _all(self._namespaces):
            for item in await _all(partial(self._items, namespace)):
                if item["namespace"] == namespace:
                    yield Put(tuple(namespace), item["key"], item["value"])

    async def _namespaces(self, read: list[Any]) -> list[Any]:
        return list((await self._client.store.list_namespaces(limit=_PAGE, offset=len(read)))["namespaces"])

    async def _items(self, namespace: list[str], read: list[Any]) -> list[Any]:
        search = self._client.store.search_items
        return list((await search(namespace, limit=_PAGE, offset=len(read), refresh_ttl=False))["items"])

    async def thread_count(self) -> int:
        with _reading():
            return await self._client.threads.count()

    async def threads(self) -> AsyncIterator[ForeignThread]:
        for row in await _all(self._threads):
            yield _thread(row)

    async def _threads(self, read: list[Any]) -> list[Any]:
        wanted: Any = ["thread_id", "metadata", "status", "created_at"]
        order: Any = {"sort_by": "created_at", "sort_order": "asc"}
        return list(await self._client.threads.search(limit=_PAGE, offset=len(read), select=wanted, **order))

    async def past(self, thread: ForeignThread, graph: AnyPregel) -> Past:
        states = await _all(partial(self._history, thread.id))
        past = restored(graph, states[::-1])
        if not states or not states[0]["next"]:
            return past
        with _reading():
            runs: list[Any] = list(await self._client.runs.list(thread.id, limit=1))
        return replace(past, asked=runs[0]["kwargs"] if runs else {})

    async def _history(self, thread_id: str, read: list[Any]) -> list[Any]:
        before = read[-1]["checkpoint"] if read else None
        return list(await self._client.threads.get_history(thread_id, limit=_PAGE, before=before))

    async def close(self) -> None:
        await self._client.aclose()


async def _all(page: Callable[[list[Any]], Awaitable[list[Any]]]) -> list[Any]:
    """Reads all pages. `page` receives the rows read so far; a short page is the last."""
    read: list[Any] = []
    while True:
        with _reading():
            rows = await page(read)
        read += rows
        if len(rows) < _PAGE:
            return read


def _thread(row: Json) -> ForeignThread:
    metadata = row.get("metadata") or {}
    created_at, busy = datetime.fromisoformat(row["created_at"]), row["status"] == "busy"
    return ForeignThread(row["thread_id"], metadata, created_at, busy, began="graph_id" in metadata)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except APIStatusError as error:
        raise _refusal(error) from error
    except (httpx.HTTPError, LangGraphError) as error:
        reason = str(error) or type(error).__name__
        raise Unavailable(f"the LangGraph server does not answer: {reason}", hint="check its address") from error


def _refusal(error: APIStatusError) -> AssentError:
    """Other status codes concern one object only, so the import continues."""
    message = f"the LangGraph server answered {error.status_code} to {error.request.url.path}"
    if error.status_code in _NO_ACCESS:
        return Unauthenticated(message, hint="give a key of that server with --api-key or LANGGRAPH_API_KEY")
    if error.status_code in _LATER:
        return Unavailable(message, hint="run the import again later")
    return AssentError(message, hint="check the log of that server, and run the import again")
