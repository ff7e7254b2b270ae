"""Threads that serve callers in turns: a caller with many requests delays only itself.

A SQLite database has few reader threads. In one queue, twenty large reads of one caller would delay the small reads of
all others; here each caller has a queue, and a free thread takes the next call from the next queue.

Large JSON is read and written by one thread for all (`alone`). It holds the GIL for tens of milliseconds; several such
threads would pass the lock among themselves, and the event loop would wait for each of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES = 32 * 1024
"""The size from which JSON is large."""

_FEW = 4

caller: ContextVar[str] = ContextVar("caller", default="")
"""The current caller; empty for the server's own work, or before authentication."""


async def alone(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs work on large JSON, one at a time, outside the event loop."""
    return await asyncio.wrap_future(_large_work_thread().submit(lambda: function(*args, **kwargs)))


async def beside(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs short work outside the event loop, in dedicated threads. The threads of `asyncio.to_thread` belong to the
    graphs, whose synchronous nodes can block all of them for as long as a model takes to answer."""
    within = copy_context()
    return await asyncio.wrap_future(_short_work_threads().submit(lambda: within.run(function, *args, **kwargs)))


async def one_by_one(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """As `beside`, for longer work: one call at a time per caller, including abandoned calls, so that the other threads
    stay free for others."""
    within = copy_context()
    return await _single_shares().run(
        lambda: _short_work_threads().submit(lambda: within.run(function, *args, **kwargs))
    )


@cache
def _single_shares() -> Shares:
    return Shares(1)


@cache
def _short_work_threads() -> FairThreads:
    return FairThreads(_FEW, "assent-beside")


@cache
def _large_work_thread() -> FairThreads:
    return FairThreads(1, "assent-large")


class Shares:
    """Limits the concurrent use of a resource per caller."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._held: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of_caller(self) -> AbstractAsyncContextManager[None]:
        """The share of the current caller. The server's own work is not limited."""
        name = caller.get()
        return self._share(name) if name else nullcontext()

    async def run(self, submit: Callable[[], Future[T]]) -> T:
        """Runs a call in the share of the current caller. The share is held until the thread is done, even if the
        caller no longer waits."""
        name, loop = caller.get(), asyncio.get_running_loop()
        if not name:
            return await asyncio.wrap_future(submit())
        share = self._share(name)
        await share.acquire()
        started = submit()
        started.add_done_callback(lambda _: loop.call_soon_threadsafe(share.release))
        return await asyncio.wrap_future(started)

    def _share(self, name: str) -> asyncio.Semaphore:
        share = self._held.get(name)
        if share is None:
            share = self._held[name] = asyncio.Semaphore(self._each)
        return share


class FairThreads:
    def __init__(self, number: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(number, name)
        self._queues: OrderedDict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = OrderedDict()
        self._changing = threading.Lock()

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Queues a call for the current caller."""
        future: Future[T] = Future()
        with self._changing:
            self._queues.setdefault(caller.get(), deque()).append((future, function))
        self._threads.submit(self._run_next)
        return future

    def shutdown(self) -> None:
        self._threads.shutdown()

    def _run_next(self) -> None:
        future, function = self._next()
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - every error belongs to the caller, not to this thread
            future.set_exception(error)

    def _next(self) -> tuple[Future[Any], Callable[[], Any]]:
        """The next call. Its caller moves to the end of the rotation."""
        with self._changing:
            name, queue = self._queues.popitem(last=False)
            job = queue.popleft()
            if queue:
                self._queues[name] = queue
            return job
