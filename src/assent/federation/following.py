"""Follows one deployment: finds its new, changed and vanished questions, and keeps the items here in line with them.

A thread search has only offsets. The list is therefore read from the last changed thread on, up to the first page
without news; a sweep now and then reads all of it. A thread that is missing in the list is read itself before its
items are closed, because pages shift while they are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

from assent.errors import DeploymentFailed
from assent.federation.answering_runs import delivery_of, is_active, resumes
from assent.federation.connection import Connection
from assent.federation.failures import failed
from assent.federation.questions import Questions, acceptable
from assent.federation.recording import Observed, record
from assent.federation.seen import Seen
from assent.kernel.ids import new_id
from assent.kernel.store.ports import Store
from assent.review.model.questions import Resolution
from assent.review.thread_items import Waiting
from assent.review.threads import elsewhere, open_items
from assent.threads.model.deployments import Deployment, Trouble, search_for
from assent.threads.rows.remote import remote_threads
from assent.threads.rows.remote.remote_threads import RemoteThread

T = TypeVar("T")

SWEEP_SECONDS = 15.0
_PAGE = 100  # the most that every server gives
_AT_ONCE = 25
_READ_AT_ONCE = 8
_MISSING_AT_ONCE = 50
_MOST_LISTED = 20_000
"""Threads of one search. A deployment could list others for ever."""
_LOOK_AGAIN_SECONDS = 1.0
_WAITING, _FAILED, _BUSY = "interrupted", "error", "busy"


@dataclass
class Follower:
    store: Store
    tenant: str
    deployment: Deployment
    connection: Connection
    who: str
    _known: dict[str, RemoteThread] | None = None
    _swept_at: float | None = None
    _look_at: dict[str, float] = field(default_factory=dict)
    _new_keys: dict[str, str] = field(default_factory=dict)
    _quiet: dict[str, str] = field(default_factory=dict)
    """Versions of threads that never asked anything here. They have no rows, because only items have a quota."""
    _unread: list[DeploymentFailed] = field(default_factory=list)

    async def look(self) -> bool:
        """Brings the items in line with the deployment; returns whether anything had changed. Raises at the end where
        the deployment cannot show single threads: they hold up no others."""
        self._unread.clear()
        if self._known is None:
            stored = await self.store.read(self.tenant, remote_threads.of_deployment, self.deployment.id)
            self._known = {thread.thread_id: thread for thread in stored}
        for thread_id in await self.store.read(self.tenant, remote_threads.unsettled, self.deployment.id):
            if known := self._known.get(thread_id):
                self._known[thread_id] = replace(known, settled=False)
        sweeps = self._swept_at is None or _now() - self._swept_at >= SWEEP_SECONDS
        listed, complete, news = set[str](), True, 0
        for searched in self._searched():
            for status in (_WAITING, _FAILED) if sweeps else (_WAITING,):
                fresh, entire = await self._list(status, searched, listed, sweeps=sweeps)
                news, complete = news + fresh, complete and entire
        if complete:
            news += await self._look_for_missing(listed)
        if self._unread:
            raise self._unread[0]
        if sweeps:
            self._swept_at = _now()
        return news > 0

    def _searched(self) -> list[dict[str, str]]:
        return [search_for(graph) for graph in self.deployment.graphs] or [{}]

    async def _list(self, status: str, metadata: dict[str, str], listed: set[str], *, sweeps: bool) -> tuple[int, bool]:
        """The number of changed threads, and whether all threads were read."""
        offset, news = 0, 0
        while True:
            rows = await self.connection.threads(status, metadata, limit=_PAGE, offset=offset)
            asking = rows if status == _WAITING else [seen for seen in rows if seen.pending != []]
            fresh = [seen for seen in asking if self._is_news(seen)]
            listed |= {seen.id for seen in asking}
            await self._record_all(self._observe, fresh)
            news, offset = news + len(fresh), offset + len(rows)
            if len(rows) < _PAGE:
                return news, True
            if offset >= _MOST_LISTED:
                raise failed(Trouble.FAILING, f"more than {_MOST_LISTED:,} threads have the status {status!r}")
            if self.connection.sorts and not sweeps and not fresh:
                return news, False

    async def _record_all(self, observe: Callable[[T], Awaitable[Observed | None]], listed: Iterable[T]) -> int:
        """Records what can be read, also if something else cannot: a network that fails now and then must not hold up
        everything. Returns the number of changes."""
        slots = asyncio.Semaphore(_READ_AT_ONCE)

        async def observed(thread: T) -> Observed | None:
            async with slots:
                return await observe(thread)

        results = await asyncio.gather(*map(observed, listed), return_exceptions=True)
        changed = [result for result in results if isinstance(result, Observed)]
        await self._record([observed for observed in changed if not self._passes_over(observed)])
        for result in results:
            if isinstance(result, DeploymentFailed) and result.problem == Trouble.FAILING:
                self._unread.append(result)
            elif isinstance(result, BaseException):
                raise result
        return len(changed)

    def _passes_over(self, observed: Observed) -> bool:
        """Whether the thread needs no row, because it has never asked anything here."""
        thread = observed.thread
        if observed.pending or thread.thread_id in self._threads:
            return False
        if len(self._quiet) >= _MOST_LISTED:
            self._quiet.clear()
        self._quiet[thread.thread_id] = thread.version
        self._new_keys.pop(thread.thread_id, None)
        return True

    def _is_news(self, seen: Seen) -> bool:
        known = self._threads.get(seen.id)
        if known is None:
            return self._quiet.get(seen.id) != seen.version
        return not known.settled or known.version != seen.version

    @property
    def _threads(self) -> dict[str, RemoteThread]:
        assert self._known is not None, "loaded by the first look"
        return self._known

    async def _look_for_missing(self, listed: set[str]) -> int:
        """Reads threads that asked something and are no longer listed. One that runs is read again later."""
        now = _now()
        missing = (id for id, known in self._threads.items() if known.waits and id not in listed)
        due = list(islice((id for id in missing if self._look_at.get(id, 0) <= now), _MISSING_AT_ONCE))
        return await self._record_all(self._observe_missing, due)

    async def _observe_missing(self, thread_id: str) -> Observed | None:
        seen, known = await self.connection.thread(thread_id), self._threads[thread_id]
        if seen is None:
            return Observed(_moved(known, "", waits=False), (), gone=Resolution.THREAD_ENDED)
        asks = seen.status in (_WAITING, _FAILED)
        skipped = seen.status == _BUSY or (asks and not self._is_news(seen))
        observed = None if skipped else await self._observe(seen)
        self._look_at[thread_id] = _now() + (SWEEP_SECONDS if asks else _LOOK_AGAIN_SECONDS)
        return observed

    async def _observe(self, seen: Seen) -> Observed:
        asked = seen.pending if seen.pending is not None else await self.connection.pending(seen.id)
        pending = await self._acceptable(seen.id, asked)
        thread = RemoteThread(
            self.deployment.id,
            seen.id,
            self._key(seen.id),
            seen.graph_id,
            seen.assistant_id,
            seen.version,
            waits=bool(asked),
            settled=True,
        )
        if not pending or seen.id not in self._threads:
            return Observed(thread, pending, gone=await self._gone(thread, pending))
        waiting = Waiting(thread.key, pending)
        if accepted := await self.store.read(self.tenant, elsewhere.accepted_answers, waiting):
            return await self._observe_answered(thread, pending, accepted)
        return Observed(thread, pending, gone=await self._gone(thread, pending))

    async def _acceptable(self, thread_id: str, asked: Sequence[Mapping[str, Any]]) -> Questions:
        return await acceptable(self.store.limits, asked, thread=thread_id, deployment=self.deployment.id)

    def _key(self, thread_id: str) -> str:
        """The id here of one of its threads. Nobody can choose it for a thread of their own before it is stored."""
        known = self._threads.get(thread_id)
        return known.key if known else self._new_keys.setdefault(thread_id, new_id())

    async def _observe_answered(
        self, thread: RemoteThread, pending: Sequence[Mapping[str, Any]], accepted: Mapping[str, str]
    ) -> Observed:
        """The deployment shows questions whose answer it has accepted. While that is under way, they wait for nobody.
        Once its run has ended, the agent asks again. Without a trace of the run, the answer is in doubt."""
        runs = {delivery_of(run): run for run in await self.connection.runs(thread.thread_id)}
        now, shown = await self.connection.thread(thread.thread_id), await self.connection.pending(thread.thread_id)
        asked = await self._acceptable(thread.thread_id, shown)
        still = {str(question["id"]) for question in asked}
        states = {id: _state_of(runs.get(delivery)) for id, delivery in accepted.items() if id in still}
        under_way = now is None or now.status == _BUSY or _ACTIVE_STATE in states.values()
        doubted = () if under_way else tuple(id for id, state in states.items() if state is None)
        kept = [
            question
            for question in asked
            if str(question["id"]) not in accepted or _is_over(states, question, under_way)
        ]
        return Observed(_moved(thread, thread.version, waits=True, settled=not under_way), kept, doubted)

    async def _gone(self, thread: RemoteThread, pending: Sequence[Mapping[str, Any]]) -> Resolution | None:
        """How the open questions ended that the thread asks no longer."""
        known = self._threads.get(thread.thread_id)
        if known is None or not known.waits:
            return None
        open_ids = await self.store.read(self.tenant, open_items.interrupts_of, thread.key)
        if open_ids <= {str(question["id"]) for question in pending}:
            return None
        latest = await self.connection.latest_run(thread.thread_id)
        return Resolution.ANSWERED_ELSEWHERE if resumes(latest) else Resolution.SUPERSEDED

    async def _record(self, observed: Sequence[Observed]) -> None:
        for batch in _batches(observed):
            recorded = await self.store.write(self.tenant, record, self.deployment, self.who, batch)
            self._threads.update({thread.thread_id: thread for thread in recorded})


_ACTIVE_STATE = "active"


def _state_of(run: Mapping[str, Any] | None) -> str | None:
    if run is None:
        return None
    return _ACTIVE_STATE if is_active(run) else "ended"


def _is_over(states: Mapping[str, str | None], question: Mapping[str, Any], under_way: bool) -> bool:
    return not under_way and states.get(str(question["id"])) == "ended"


def _moved(thread: RemoteThread, version: str, *, waits: bool, settled: bool = True) -> RemoteThread:
    named = (thread.deployment_id, thread.thread_id, thread.key, thread.graph_id, thread.assistant_id)
    return RemoteThread(*named, version, waits, settled)


def _batches(observed: Iterable[Observed]) -> Iterator[list[Observed]]:
    rest = iter(observed)
    while batch := list(islice(rest, _AT_ONCE)):
        yield batch


def _now() -> float:
    return asyncio.get_running_loop().time()
