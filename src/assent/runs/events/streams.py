"""The events of a thread for one client: first those that it has missed, then new ones as they happen.

Missed events come from stored frames, new ones from the bus, and both are translated alike. A client that reads too
slowly, or whose frames got lost between processes, is not disconnected: its stream is read again from its position.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assent.errors import NotFound, Unavailable
from assent.identity.access import renewed
from assent.identity.model.access import Principal
from assent.kernel.store.ports import Store
from assent.runs.events.model.events import REQUESTED, Event, base_of, milliseconds
from assent.runs.events.model.translation import RunEvents
from assent.runs.runs import Runs
from assent.threads.bus import Bus, FellBehind, Subscription
from assent.threads.model.frames import ATTEMPT_STRIDE, STATE_UPDATE, Frame, Stream, Topic, moment, position_of
from assent.threads.model.runs import Run
from assent.threads.model.threads import require_thread_id
from assent.threads.rows import frames, runs, threads
from assent.threads.rows.frames import Begun

IDLE_SECONDS = 5.0
_LOOK_AGAIN_SECONDS = 0.02
"""Limits how often a stream looks for a thread that its caller may not read, however busy that thread is."""
Wants = Callable[[Event], bool]


@dataclass(slots=True)
class _Following:
    """A run whose frames are being translated. `seen`: the number of its last frame; None if its frames are not stored,
    so that earlier ones may be unknown."""

    run: Run
    events: RunEvents
    seen: int | None
    done: bool = False
    """Whether its end was translated."""


class EventStreams:
    def __init__(self, store: Store, bus: Bus, runs: Runs) -> None:
        self._store = store
        self._bus = bus
        self._runs = runs
        self._serving = set[asyncio.Task[Any]]()

    async def require(self, caller: Principal, thread_id: str) -> None:
        """Refuses a caller who may read no threads."""
        with suppress(NotFound):
            (await self._runs.follow_thread(caller, thread_id)).close()

    async def current(self, caller: Principal) -> Principal:
        """The caller with the rights of now. The project's own auth handlers are asked again for every use."""
        return await renewed(self._store, caller)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Around the current task, which serves a client that would stay connected."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            yield
        finally:
            self._serving.discard(task)

    async def close(self) -> None:
        """Disconnects the clients, which connect again after the next start."""
        for task in self._serving:
            task.cancel()

    def open(self, caller: Principal, thread_id: str, wants: Wants, *, since: int = 0) -> ThreadEvents:
        """The wanted events numbered above `since`. The thread may not exist yet."""
        require_thread_id(thread_id)
        return ThreadEvents(self._store, self._bus, self._runs, caller, thread_id, wants, since)


class ThreadEvents:
    """Iterated by one reader. None means that nothing has happened for a while."""

    def __init__(
        self,
        store: Store,
        bus: Bus,
        runs: Runs,
        caller: Principal,
        thread_id: str,
        wants: Wants,
        since: int,
    ) -> None:
        self._store = store
        self._bus = bus
        self._runs = runs
        self._caller = caller
        self._thread_id = thread_id
        self._wants = wants
        self._since = since
        self._following: dict[int, _Following | None] = {}
        """By the creation time of the run, which is in the ids of its frames. None: a run that was deleted."""

    def tree(self) -> dict[str, Any] | None:
        """The newest run with its subgraphs; None without a run."""
        known = [following for following in self._following.values() if following is not None]
        return known[-1].events.tree() if known else None

    async def __aiter__(self) -> AsyncIterator[Event | None]:
        while True:
            subscription = await self._subscribed()
            if subscription is None:
                yield None
                continue
            try:
                async for event in self._missed():
                    yield event
                async for live in self._live(subscription):
                    yield live
            except FellBehind:
                pass
            finally:
                subscription.close()

    async def _subscribed(self) -> Subscription | None:
        """None if the thread did not exist for a while: clients subscribe before they start the run that creates it. A
        thread that the caller may not read looks the same, also in time."""
        coming = await self._bus.follow_now(Topic(self._caller.tenant, self._thread_id, of_thread=True))
        loop = asyncio.get_running_loop()
        until = loop.time() + IDLE_SECONDS
        try:
            while loop.time() < until:
                with suppress(NotFound):
                    return await self._runs.follow_thread(self._caller, self._thread_id)
                with suppress(TimeoutError, FellBehind):
                    async with asyncio.timeout_at(until):
                        await coming.next()
                        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            return None
        finally:
            coming.close()

    # Events that the client has missed

    async def _missed(self) -> AsyncIterator[Event]:
        """The events of stored frames. The subscription came first, so that none is lost in between."""
        await self._flush()
        begun = await self._store.read(self._caller.tenant, frames.begun, self._thread_id)
        self._following.clear()
        read = sum(base_of(run.began_at) <= self._since for run in begun)
        for run in begun[max(read - 1, 0) :]:  # the last one that the client has read of may have more events
            async for event in self._replayed(run, is_last=run is begun[-1]):
                yield event

    async def _flush(self) -> None:
        for run in await self._store.read(self._caller.tenant, runs.active, self._thread_id):
            resumable = bool(run.kwargs.get("resumable"))
            await self._bus.flush(Stream(self._caller.tenant, self._thread_id, run.id, run.attempt, resumable))

    async def _replayed(self, begun: Begun, *, is_last: bool) -> AsyncIterator[Event]:
        replay = await self._store.read(self._caller.tenant, frames.of_run, begun.run_id)
        if replay is None:
            self._following[moment(begun.created_at)] = None
            return
        run, stored = replay
        following = self._follow(run)
        view = await self._runs.view(self._caller, self._thread_id)
        for frame in stored:
            shown = await view.frame(frame)
            async for event in self._told(following, following.events.of(shown, _time_of(frame.at))):
                yield event
            following.seen = frame.seq
        if not stored and not run.status.active:
            following.events.continue_after(self._since)
        if not run.status.active:
            async for event in self._ended(following, run, is_last=is_last):
                yield event

    def _follow(self, run: Run) -> _Following:
        kept = bool(run.kwargs.get("resumable"))
        following = _Following(run, RunEvents(run), 0 if kept else None)
        if not kept:
            following.events.continue_after(self._since)
        self._following[moment(run.created_at)] = following
        return following

    async def _ended(self, following: _Following, run: Run, *, is_last: bool) -> AsyncIterator[Event]:
        """The end of a run, and the thread's questions if they belong to it."""
        at = _time_of(run.ended_at)
        if is_last:
            async for event in self._told(following, following.events.ask(await self._pending(), at)):
                yield event
        async for event in self._told(following, following.events.end(run.status, at, run.error)):
            yield event
        following.done = True

    async def _pending(self) -> list[dict[str, Any]]:
        thread = await self._store.read(self._caller.tenant, threads.get, self._thread_id)
        if thread is None or not thread.waits:
            return []
        shown: list[dict[str, Any]] = await (await self._runs.view(self._caller, self._thread_id)).of(thread.pending)
        return shown

    # Live events

    async def _live(self, subscription: Subscription) -> AsyncIterator[Event | None]:
        """New events, until frames are missing."""
        while True:
            frame: Frame | None = None
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    frame = await subscription.next()
            if frame is None:
                yield None
                if self._bus.shared and await self._is_behind():
                    return
            elif frame.event != STATE_UPDATE:
                following = await self._followed(frame)
                if following is None or following.done or frame.seq <= (following.seen or 0):
                    continue
                if _misses(following.seen, frame.seq):
                    return
                async for event in self._news(following, frame):
                    yield event

    async def _followed(self, frame: Frame) -> _Following | None:
        position = position_of(frame.id)
        if position is None:
            return None
        if position[0] not in self._following:
            await self._meet(position[0])
        return self._following[position[0]]

    async def _meet(self, created: int) -> None:
        """Looks up the run of the first frame. It may have been rolled back meanwhile."""
        begun = await self._store.read(self._caller.tenant, frames.begun, self._thread_id)
        met = next((run for run in reversed(begun) if moment(run.created_at) == created), None)
        run = await self._store.read(self._caller.tenant, runs.get, met.run_id) if met is not None else None
        self._following[created] = None
        if run is not None:
            self._follow(run)

    async def _news(self, following: _Following, frame: Frame) -> AsyncIterator[Event]:
        following.seen = frame.seq if following.seen is not None else None
        if _run_done(frame) is None:
            events = following.events.of(frame, int(time.time() * 1000))
            async for event in self._told(following, events):
                yield event
            return
        run = await self._store.read(self._caller.tenant, runs.get, following.run.id)
        if run is None:
            async for event in self._told(following, following.events.end(None, int(time.time() * 1000))):
                yield event
            following.done = True
        else:
            async for event in self._ended(following, run, is_last=True):
                yield event

    async def _is_behind(self) -> bool:
        """Whether a run has begun or ended without a notice. A notice can be lost while the connection that listens is
        made."""
        begun = await self._store.read(self._caller.tenant, frames.begun, self._thread_id)
        return any(self._lacks(run) for run in begun if base_of(run.began_at) > self._since or not run.status.active)

    def _lacks(self, run: Begun) -> bool:
        if moment(run.created_at) not in self._following:
            return base_of(run.began_at) > self._since
        following = self._following[moment(run.created_at)]
        return following is not None and not run.status.active and not following.done

    # Both

    async def _told(self, following: _Following, events: Iterator[Event]) -> AsyncIterator[Event]:
        """The wanted ones that the client does not have yet."""
        for event in events:
            if event.seq <= self._since:
                continue
            self._since = event.seq
            if not self._wants(event):
                continue
            if event.method == REQUESTED:
                await self._mark_shown(following.run.id)
            yield event

    async def _mark_shown(self, run_id: str) -> None:
        """The client sees the question: from now on a positional answer can only mean it."""
        with suppress(Unavailable):
            run = await self._store.read(self._caller.tenant, runs.get, run_id)
            if run is not None and run.ended_at is not None:
                await self._store.write(self._caller.tenant, threads.mark_shown, self._thread_id, as_of=run.ended_at)


def _time_of(instant: datetime | None) -> int:
    return milliseconds(instant) if instant is not None else 0


def _run_done(frame: Frame) -> str | None:
    """The id of the run that this frame ends."""
    if frame.event != "metadata":
        return None
    told: dict[str, Any] = json.loads(frame.data)
    return told["run_id"] if told.get("status") == "run_done" else None


def _misses(seen: int | None, seq: int) -> bool:
    """Whether frames are missing before this one. Each attempt numbers its frames from its own start."""
    if seen is None or seq == seen + 1:
        return False
    return seq % ATTEMPT_STRIDE != 1 or seq // ATTEMPT_STRIDE <= seen // ATTEMPT_STRIDE
