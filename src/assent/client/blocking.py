"""The inbox for programs without an event loop: the methods of `AsyncInbox`, which block."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import wraps
from threading import Thread
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from assent.client.inbox import AsyncInbox

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[AsyncInbox, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Inbox, P], T]:
    @wraps(method)
    def call(self: Inbox, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._loop.run(method(self._inbox, *args, **kwargs))

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
            while (result := self._loop.run(following())) is not None:
                yield result[0]
        finally:
            self._end(source)

    return iterate


class _Loop:
    """An event loop in a daemon thread: a program that does not close its client can still exit."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except BaseException:
            running.cancel()  # Ctrl-C ends the call as well
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


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
        self._loop = _Loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Also ends what is iterated."""
        for source in list(self._iterated):
            self._end(source)
        self._loop.run(self._inbox.aclose())
        self._loop.close()

    def _end(self, source: AsyncGenerator[Any, None]) -> None:
        async def ending() -> None:
            await source.aclose()

        if source in self._iterated and not sys.is_finalizing():  # at the exit, the loop does not run any longer
            self._iterated.discard(source)
            self._loop.run(ending())

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
