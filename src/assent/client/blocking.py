"""The inbox for programs without an event loop: the methods of `AsyncInbox`, which block."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import ExitStack
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from assent.client.inbox import AsyncInbox

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[AsyncInbox, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Inbox, P], T]:
    @wraps(method)
    def call(self: Inbox, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._portal.call(partial(method, self._inbox, *args, **kwargs))
        return result

    return call


def _iterating(
    method: Callable[Concatenate[AsyncInbox, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Inbox, P], Iterator[T]]:
    @wraps(method)
    def iterate(self: Inbox, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        async def following() -> tuple[T] | None:
            try:
                return (await anext(source),)
            except StopAsyncIteration:
                return None

        source = method(self._inbox, *args, **kwargs)
        self._iterated.add(source)
        try:
            while (result := self._portal.call(following)) is not None:
                yield result[0]
        finally:
            self._end(source)

    return iterate


class Inbox:
    """One event loop in a thread of its own serves all calls. Close it, or use it in a `with` block."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:2024",
        key: str | None = None,
        *,
        timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._inbox = AsyncInbox(url, key, timeout=timeout, transport=transport)
        self._iterated = set[AsyncGenerator[Any, None]]()
        self._stack = ExitStack()
        self._portal: BlockingPortal = self._stack.enter_context(start_blocking_portal())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Also ends what is iterated."""
        for source in list(self._iterated):
            self._end(source)
        self._portal.call(self._inbox.aclose)
        self._stack.close()

    def _end(self, source: AsyncGenerator[Any, None]) -> None:
        if source in self._iterated:
            self._iterated.discard(source)
            self._portal.call(source.aclose)

    create = _blocking(AsyncInbox.create)
    resubmit = _blocking(AsyncInbox.resubmit)
    cancel = _blocking(AsyncInbox.cancel)
    wait = _blocking(AsyncInbox.wait)
    get = _blocking(AsyncInbox.get)
    page = _blocking(AsyncInbox.page)
    list = _iterating(AsyncInbox.list)
    comments = _blocking(AsyncInbox.comments)
    revisions = _blocking(AsyncInbox.revisions)
    timeline = _blocking(AsyncInbox.timeline)
    watch = _iterating(AsyncInbox.watch)
    decide = _blocking(AsyncInbox.decide)
    approve = _blocking(AsyncInbox.approve)
    reject = _blocking(AsyncInbox.reject)
    request_revision = _blocking(AsyncInbox.request_revision)
    undo = _blocking(AsyncInbox.undo)
    comment = _blocking(AsyncInbox.comment)
    recommend = _blocking(AsyncInbox.recommend)
    claim = _blocking(AsyncInbox.claim)
    release = _blocking(AsyncInbox.release)
    link = _blocking(AsyncInbox.link)
    unlink = _blocking(AsyncInbox.unlink)
