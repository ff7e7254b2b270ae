"""The inbox for async programs: create items, wait for decisions, and everything that a key allows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import quote

import httpx

from assent.client.connection import Connection
from assent.client.views import Change, Comment, Event, Item, ItemPage, Summary, Verb, Verdict
from assent.errors import AssentError, Unavailable

ITEMS, EVENTS = "/api/inbox/items", "/api/inbox/events"
_POLL_SECONDS = 10.0
_RECONNECT_SECONDS = 1.0
Json = Any


def item_path(item_id: str, *below: str) -> str:
    return "/".join([ITEMS, *(quote(part, safe="") for part in (item_id, *below))])


class AsyncInbox:
    """Methods that change something take an `idempotency_key`: a repeated call with the same key does nothing twice.
    Without one, each call has its own. Errors are those of `assent.errors`, by the code of the response."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:2024",
        key: str | None = None,
        *,
        timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
        connection: Connection | None = None,
    ) -> None:
        self.connection = connection or Connection(url, key, timeout=timeout, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self.connection.aclose()

    # Requests

    async def create(
        self,
        type: str,
        title: str,
        *,
        description: str | None = None,
        payload: Json = None,
        actions: Sequence[Mapping[str, Json]] = (),
        recipient: str | None = None,
        entity: Mapping[str, str] | None = None,
        thread_ids: Sequence[str] = (),
        expires_at: datetime | None = None,
        dedupe_key: str | None = None,
        callback: str | None = None,
        idempotency_key: str | None = None,
    ) -> Item:
        """Asks a person. A repeated `dedupe_key` of the same caller returns the existing item."""
        body = {"type": type, "title": title, "description": description, "payload": payload}
        body |= {"actions": list(actions), "recipient": recipient, "entity": entity, "thread_ids": list(thread_ids)}
        body |= {"expires_at": expires_at and expires_at.isoformat(), "dedupe_key": dedupe_key, "callback": callback}
        item: Item = await self.connection.send("POST", ITEMS, _given(body), key=idempotency_key)
        return item

    async def resubmit(
        self,
        item_id: str,
        *,
        title: str | None = None,
        description: str | None = None,
        payload: Json = None,
        actions: Sequence[Mapping[str, Json]] | None = None,
        idempotency_key: str | None = None,
    ) -> Item:
        """The next revision of a request that was sent back; omitted fields stay unchanged."""
        body = {"title": title, "description": description, "payload": payload, "actions": actions}
        return await self._change(item_id, "resubmission", _given(body), idempotency_key)

    async def cancel(self, item_id: str, *, notes: str | None = None, idempotency_key: str | None = None) -> Item:
        """Withdraws an own request, or closes an item without a decision."""
        return await self._change(item_id, "cancellation", {"notes": notes}, idempotency_key)

    async def wait(self, item_id: str, *, timeout: float | None = None) -> Item:
        """The item once it is decided, sent back, expired or cancelled, and its decision can no longer be undone.

        Raises `TimeoutError` after `timeout` seconds. Changes arrive as events; the item is also read every ten
        seconds, so that a lost connection or a proxy that holds events back only delays the answer."""
        try:
            async with asyncio.timeout(timeout):
                return await self._decided(item_id)
        except TimeoutError:
            told = f"item {item_id} is not decided after {timeout} seconds; wait for the same id to go on"
            raise TimeoutError(told) from None

    async def _decided(self, item_id: str) -> Item:
        changed = asyncio.Event()
        following = asyncio.create_task(self._signal(item_id, changed))
        try:
            while (left := _left(item := await self.get(item_id))) is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, _POLL_SECONDS)):
                        await changed.wait()
                changed.clear()
            return item
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    # Reading

    async def get(self, item_id: str) -> Item:
        item: Item = await self.connection.get(item_path(item_id))
        return item

    async def page(
        self,
        filter: str = "",
        *,
        sort: str | None = None,
        group: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        arguments: bool = False,
    ) -> ItemPage:
        """One page of items; `next` is the cursor of the next. `arguments`: include the calls and their arguments."""
        query = {"sort": sort, "group": group, "limit": limit, "cursor": cursor, "arguments": arguments}
        page: ItemPage = await self.connection.get(ITEMS, filter=filter, **query)
        return page

    async def list(
        self, filter: str = "", *, sort: str | None = None, most: int | None = None
    ) -> AsyncGenerator[Summary, None]:
        """All items of a filter, such as `is:pending type:tool`, page by page."""
        async for page in self.connection.pages(ITEMS, most=most, filter=filter, sort=sort):
            for item in page["items"]:
                yield item

    async def comments(self, item_id: str) -> Sequence[Comment]:
        comments: list[Comment] = await self.connection.get(item_path(item_id, "comments"))
        return comments

    async def revisions(self, item_id: str) -> Sequence[dict[str, Any]]:
        revisions: list[dict[str, Any]] = await self.connection.get(item_path(item_id, "revisions"))
        return revisions

    async def timeline(self, item_id: str) -> Sequence[Event]:
        events: list[Event] = await self.connection.get(item_path(item_id, "timeline"))
        return events

    async def watch(self, *, after: int | None = None) -> AsyncGenerator[Change, None]:
        """Changes of items, from now on or after the `seq` of an earlier one. Connects again after a lost connection,
        and misses nothing."""
        last = None if after is None else str(after)
        while True:
            try:
                async with aclosing(self.connection.stream(EVENTS, after=last)) as events:
                    async for event in events:
                        last = event.id or last
                        change: Change = {"seq": int(event.id or 0), **event.data}  # type: ignore[typeddict-item]
                        yield change
            except Unavailable:
                pass
            await asyncio.sleep(_RECONNECT_SECONDS)

    # Deciding: with the key of a person

    async def decide(
        self,
        item: Summary | Item,
        verb: Verb | None = None,
        *,
        actions: Sequence[Verdict] = (),
        message: str | None = None,
        notes: str | None = None,
        grace_seconds: float = 0,
        idempotency_key: str | None = None,
    ) -> Item:
        """Decides the revision of `item`, as the caller read it: one verb for all actions, or one verdict each."""
        body = {**_seen(item), "verb": verb, "actions": list(actions), "message": message, "notes": notes}
        return await self._change(
            item["id"], "decision", _given(body | {"grace_seconds": grace_seconds}), idempotency_key
        )

    async def approve(
        self, item: Summary | Item, *, notes: str | None = None, idempotency_key: str | None = None
    ) -> Item:
        return await self.decide(item, "approve", notes=notes, idempotency_key=idempotency_key)

    async def reject(
        self, item: Summary | Item, message: str | None = None, *, idempotency_key: str | None = None
    ) -> Item:
        """`message` is the reason, which the agent receives."""
        return await self.decide(item, "reject", message=message, idempotency_key=idempotency_key)

    async def request_revision(
        self, item: Summary | Item, notes: str, *, grace_seconds: float = 0, idempotency_key: str | None = None
    ) -> Item:
        body = {**_seen(item), "notes": notes, "grace_seconds": grace_seconds}
        return await self._change(item["id"], "revision-request", body, idempotency_key)

    async def undo(self, item_id: str, *, idempotency_key: str | None = None) -> Item:
        """Withdraws an own decision during its grace period."""
        item: Item = await self.connection.send("DELETE", item_path(item_id, "decision"), key=idempotency_key)
        return item

    # Collaboration

    async def comment(self, item_id: str, text: str, *, idempotency_key: str | None = None) -> Comment:
        path = item_path(item_id, "comments")
        comment: Comment = await self.connection.send("POST", path, {"text": text}, key=idempotency_key)
        return comment

    async def recommend(
        self, item: Summary | Item, verb: Verb, reason: str, *, idempotency_key: str | None = None
    ) -> Comment:
        """Recommends a decision to the people who decide. It decides nothing."""
        path, body = item_path(item["id"], "recommendation"), {**_seen(item), "verb": verb, "reason": reason}
        comment: Comment = await self.connection.send("POST", path, body, key=idempotency_key)
        return comment

    async def claim(self, item_id: str) -> Item:
        item: Item = await self.connection.send("PUT", item_path(item_id, "claim"))
        return item

    async def release(self, item_id: str) -> Item:
        item: Item = await self.connection.send("DELETE", item_path(item_id, "claim"))
        return item

    async def link(self, item_id: str, thread_id: str) -> Item:
        item: Item = await self.connection.send("PUT", item_path(item_id, "links", thread_id))
        return item

    async def unlink(self, item_id: str, thread_id: str) -> Item:
        item: Item = await self.connection.send("DELETE", item_path(item_id, "links", thread_id))
        return item

    # Helpers

    async def _change(self, item_id: str, below: str, body: Json, key: str | None) -> Item:
        item: Item = await self.connection.send("POST", item_path(item_id, below), body, key=key)
        return item

    async def _signal(self, item_id: str, changed: asyncio.Event) -> None:
        """Sets `changed` after each change of the item. Ends where the server offers no events: the caller polls."""
        with suppress(AssentError):
            async with aclosing(self.watch()) as changes:
                async for change in changes:
                    if change["item"]["id"] == item_id:
                        changed.set()


def _given(body: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in body.items() if value is not None and value != []}


def _seen(item: Summary | Item) -> dict[str, Json]:
    return {"revision": item["revision"], "hash": item["hash"]}


def _left(item: Item) -> float | None:
    """The seconds until it is worth reading again: unlimited while it waits, until the end of the grace period, None
    once the decision is final."""
    if item["status"] == "PENDING":
        return _POLL_SECONDS
    if item["undo_until"] is None:
        return None
    left = (datetime.fromisoformat(item["undo_until"]) - datetime.now(UTC)).total_seconds()
    return left + 0.1 if left > 0 else None
