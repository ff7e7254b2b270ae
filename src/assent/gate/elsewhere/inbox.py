"""The records of a gate on an Assent server, over its REST API.

A call is started under an attempt id of this process, so that a request whose reply was lost is repeated safely, and
no other attempt starts the same call. While the call runs, heartbeats tell the server that this process is alive.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit
from uuid import uuid4

from assent.client.connection import Connection
from assent.client.inbox import AsyncInbox
from assent.errors import AssentError, ConfigError, Conflict, TooLarge
from assent.gate.elsewhere import wire
from assent.gate.elsewhere.wire import CallSent
from assent.gate.records import Answered, Keeper, Look, Pending, Records
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.grants import Call, Grant, GrantStatus, Passage, Passing
from assent.review.rows.gate import PAUSED, Judged, Pause, note_of
from assent.settings import is_loopback, load

if TYPE_CHECKING:
    from langgraph.types import Command, Interrupt

T = TypeVar("T")

ROUTES = "/api/gate"
_LOOK_AGAIN_SECONDS = 0.5
_DOUBT_POLL_SECONDS = 2.0


class RemoteInbox(Keeper):
    """Give it to `ApprovalMiddleware(inbox=…)` or `@gated(inbox=…)`, or only its URL."""

    def __init__(
        self, url: str | None = None, key: str | None = None, *, deployment: str | None = None, timeout: float = 30.0
    ) -> None:
        """The key is that of an agent. `deployment` names the place that this process belongs to, if the agent has
        several with threads of their own. Omitted values come from the settings `url`, `api_key` and
        `gate_deployment`, at the first use."""
        if url is not None:
            require_safe(url)
        self._given = (url, key, deployment)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._line: _Line | None = None

    def perform(self, step: Callable[[Records], T]) -> T:
        return step(self._connected().records)

    async def aperform(self, step: Callable[[Records], T]) -> T:
        return await asyncio.to_thread(self.perform, step)

    @contextmanager
    def making(self, grant: Grant | None) -> Iterator[None]:
        if grant is None:
            yield
            return
        with self._connected().beating(grant.id):
            yield

    def wait(
        self, paused: Mapping[str, Any] | Sequence[Interrupt[Any]], *, timeout: float | None = None
    ) -> Command[Any]:
        """Waits until people have decided everything that the gate asked in the result of a graph, and returns the
        command that resumes it. Raises `TimeoutError` after `timeout` seconds."""
        from langgraph.types import Command

        raised = paused.get("__interrupt__", ()) if isinstance(paused, Mapping) else paused
        waiting = {interrupt.id: item for interrupt in raised if (item := wire.item_of(interrupt)) is not None}
        if not waiting:
            raise Conflict("the graph waits for no question of the gate")
        self._connected().run(_all_decided(self._connected().inbox, waiting.values(), timeout))
        return Command(resume={interrupt_id: {"item_id": item} for interrupt_id, item in waiting.items()})

    def __enter__(self) -> RemoteInbox:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections; the next use opens others."""
        with self._lock:
            line, self._line = self._line, None
        if line is not None and line.process == os.getpid():
            line.close()

    def _connected(self) -> _Line:
        """The connection of this process: a fork inherits no threads."""
        with self._lock:
            if self._line is None or self._line.process != os.getpid():
                self._line = _Line(*self._resolved(), self._timeout)
            return self._line

    def _resolved(self) -> tuple[str, str, str]:
        settings = load({}).settings
        url, key, deployment = self._given
        url = require_safe(url or settings.url)
        key = key or (settings.api_key.get_secret_value() if settings.api_key else None)
        if not key:
            raise ConfigError(f"no API key for {url}", hint="set ASSENT_API_KEY to the key of an agent")
        return url, key, deployment or settings.gate_deployment or ""


def require_safe(url: str) -> str:
    """The URL; raises if the agent's key could be read on the way."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return url
    if parts.scheme == "http" and is_loopback(parts.hostname or ""):
        return url
    raise ConfigError(f"{url} is not an https:// URL", hint="http:// is allowed for loopback addresses only")


async def _all_decided(inbox: AsyncInbox, item_ids: Collection[str], timeout: float | None) -> None:
    async with asyncio.timeout(timeout):
        for item_id in dict.fromkeys(item_ids):
            item: Mapping[str, Any] = await inbox.wait(item_id)
            while item["execution"] == "in_doubt":
                await asyncio.sleep(_DOUBT_POLL_SECONDS)
                item = await inbox.get(item_id)


class _Line:
    """The requests of one process. They run on an event loop in a thread of its own, also those of blocking tools."""

    def __init__(self, url: str, key: str, deployment: str, timeout: float) -> None:
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="assent gate", daemon=True)
        self._thread.start()
        self.connection = Connection(url, key, timeout=timeout)
        self.records = RemoteRecords(self.post, deployment)

    @cached_property
    def inbox(self) -> AsyncInbox:
        return AsyncInbox(connection=self.connection)

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result()

    def close(self) -> None:
        self.run(self.connection.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def post(self, path: str, body: Json) -> Any:
        return self.run(self.connection.send("POST", f"{ROUTES}{path}", body))

    @contextmanager
    def beating(self, grant_id: str) -> Iterator[None]:
        taken = self.records.taken(grant_id)
        if taken is None:
            yield
            return
        beats = asyncio.run_coroutine_threadsafe(self._beat(grant_id, taken), self._loop)
        try:
            yield
        finally:
            beats.cancel()

    async def _beat(self, grant_id: str, taken: Taken) -> None:
        while True:
            await asyncio.sleep(taken.heartbeat_seconds)
            with suppress(AssentError):  # the next one may arrive; without any, the call is in doubt
                report = {"kind": "alive", "attempt": taken.attempt}
                await self.connection.send("POST", f"{ROUTES}{_reports(grant_id)}", report)


@dataclass(frozen=True, slots=True)
class Taken:
    """A call that this process makes, and the attempt that has started it."""

    attempt: str
    call: Call
    heartbeat_seconds: float


@dataclass
class RemoteRecords(Records):
    post: Callable[[str, Json], Any]
    deployment: str
    _taken: dict[str, Taken] = field(default_factory=dict)

    def taken(self, grant_id: str) -> Taken | None:
        return self._taken.get(grant_id)

    def covers(self, grant: Grant, call: Call) -> bool:
        taken = self._taken.get(grant.id)
        return taken is not None and _identity(taken.call) == _identity(call)

    def look(self, call: Call, positions: Sequence[str]) -> Look:
        return wire.look(self.post("/look", {"call": self._sent(call), "positions": list(positions)}))

    def judge(self, call: Call) -> Judged:
        return self.look(call, ()).judged

    def use_standing(self, call: Call) -> bool:
        """A standing approval names a graph of the server, and a process may give its own graph the same name."""
        return False

    def consume(self, call: Call, answered: Answered) -> Passage:
        return self._take(call, {"answered": sorted(answered.ids), "anything_answered": answered.anything})

    def recall(self, call: Call, of_items: Collection[str] | None) -> Passage:
        return self._take(call, {"recall": True, "items": None if of_items is None else sorted(of_items)})

    def _take(self, call: Call, body: dict[str, Json]) -> Passage:
        """Waits for an attempt that may still be making the call: it ends, or its heartbeats stop."""
        attempt, waited = str(uuid4()), 0.0
        request = {"call": self._sent(call), "attempt": attempt, **body}
        while True:
            reply = self.post("/grants", request)
            passage = wire.passage(reply["passage"])
            if passage.passing is not Passing.BUSY:
                break
            if waited > 2 * reply["patience_seconds"]:
                raise Conflict(
                    f"another process makes the call of {call.tool} now", hint="resume the thread once it has ended"
                )
            threading.Event().wait(_LOOK_AGAIN_SECONDS)
            waited += _LOOK_AGAIN_SECONDS
        if passage.passing is Passing.GO and passage.grant is not None:
            self._taken[passage.grant.id] = Taken(attempt, call, reply["patience_seconds"] / 3)
        return passage

    def give_back(self, passage: Passage) -> None:
        grant = passage.grant
        if passage.passing is not Passing.GO or grant is None:
            return
        if isinstance(grant.result, dict) and PAUSED in grant.result:
            self.pause(grant.id, Pause(grant.result[PAUSED], note_of(grant)))
        elif grant.status is GrantStatus.GRANTED:
            self._end(grant.id, {"kind": "returned"})

    def pause(self, grant_id: str, paused: Pause) -> None:
        self._end(grant_id, {"kind": "paused", "asked": list(paused.asked), "note": paused.note})

    def finish(self, grant_id: str, result: Json, *, failed: bool) -> None:
        report = {"kind": "failed" if failed else "done", "result": result}
        try:
            self._end(grant_id, report)
        except TooLarge:
            self._end(grant_id, {**report, "result": {"lost": "a result that is too large"}})

    def announce_doubt(self, grant_id: str, interrupt_id: str) -> None:
        self.post(_reports(grant_id), {"kind": "doubted", "interrupt_id": interrupt_id})

    def ask(self, pending: Pending) -> tuple[Json, Json]:
        question = {
            "deployment": self.deployment,
            "thread_id": pending.thread_id,
            "interrupt_id": pending.interrupt_id,
            "value": pending.value,
            "response_schema": pending.response_schema,
            "before": list(pending.before),
            "graph": pending.graph,
        }
        told = self.post("/questions", question)
        return told["value"], told["response_schema"]

    def mark_used(self, thread_id: str, interrupt_ids: Sequence[str]) -> None:
        """The server has delivered the answers with the look."""

    def _end(self, grant_id: str, report: dict[str, Json]) -> None:
        taken = self._taken[grant_id]
        self.post(_reports(grant_id), {**report, "attempt": taken.attempt})
        del self._taken[grant_id]

    def _sent(self, call: Call) -> Json:
        return CallSent.of(call, self.deployment).to_json()


def _reports(grant_id: str) -> str:
    return f"/grants/{quote(grant_id, safe='')}/reports"


def _identity(call: Call) -> tuple[str, str, str, str]:
    return call.thread_id, call.call_id, call.tool, canonical.text(call.args)
