"""One turn of a conversation: from a request or an answer until the assistant answers or asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from assent.assistant import failures
from assent.assistant.failures import McpLost
from assent.assistant.talk import threads
from assent.assistant.talk.sightings import note
from assent.assistant.talk.views import Reply, Words, begins, last_answer, outcome_of, words_of
from assent.errors import AssistantFailed, Conflict
from assent.identity.model.access import Principal
from assent.kernel.store.ports import Store
from assent.review.threads.secrets import View
from assent.runs.runs import Runs
from assent.threads.bus import FellBehind, Subscription
from assent.threads.model.frames import END
from assent.threads.model.runs import Run, RunStatus

_LOOK_EVERY = 1.0
TOOK_TOO_LONG = "it took too long"


@dataclass(frozen=True, slots=True)
class Replied:
    """A turn that ended without a run."""

    known: Reply

    def close(self) -> None:
        return

    async def words(self) -> AsyncGenerator[Words | None]:
        return
        yield

    async def reply(self) -> Reply:
        return self.known


class Turn:
    """Follows its run from the start. `reply` ends the turn and must be called."""

    def __init__(self, store: Store, runs: Runs, caller: Principal, name: str, thread_id: str, run_id: str) -> None:
        self._store = store
        self._runs = runs
        self._caller = caller
        self._name = name
        self._thread_id = thread_id
        self.run_id = run_id
        self._subscription: Subscription = runs.guarded(runs.follow(caller, run_id), caller, thread_id)
        self._whole = False
        self._run: Run | None = None
        self._left: Any = None
        self._view: View | None = None

    def close(self) -> None:
        self._subscription.close()

    async def words(self) -> AsyncGenerator[Words | None]:
        """The model's words until the run ends; None as a heartbeat."""
        while not await self._is_over():
            async for words in self._news():
                yield words
            yield None

    async def reply(self) -> Reply:
        """The final answer, or the question."""
        try:
            async for _ in self.words():
                pass
            return await self._reply()
        finally:
            self.close()

    async def _is_over(self) -> bool:
        if self._run is None:
            run, lost = await self._store.read(self._caller.tenant, threads.run_of, self.run_id)
            if lost:
                raise Conflict("the thread has continued, and this question is no longer pending")
            self._run = run if run is not None and not run.status.active else None
        return self._run is not None

    async def _news(self) -> AsyncIterator[Words]:
        """Streams words only if the run was followed from its first frame: no partial text."""
        try:
            while True:
                async with asyncio.timeout(_LOOK_EVERY):
                    frame = await self._subscription.next()
                frame = await (await self._seen()).frame(frame)
                self._whole = self._whole or begins(frame)
                if frame.event == END:
                    self._left = orjson.loads(frame.data)
                    return
                if self._whole and (words := words_of(frame)) is not None:
                    yield words
        except TimeoutError:
            return
        except FellBehind:
            await asyncio.sleep(_LOOK_EVERY)

    async def _seen(self) -> View:
        """The caller's view of the thread, read once the run exists."""
        if self._view is None:
            self._view = await self._runs.view(self._caller, self._thread_id)
        return self._view

    async def _reply(self) -> Reply:
        run, left = self._run, self._left
        assert run is not None
        if run.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
            return await self._failed(run)
        if left is None:
            left = await self._runs.result(self._caller, self._thread_id, run.id)
        stopped_for = threads.stopped_for
        item = await self._store.read(
            self._caller.tenant, stopped_for, self._caller, self._thread_id, _interrupts(left)
        )
        if item:
            await self._store.write(self._caller.tenant, note, self._caller, item)
        if item is not None:
            return Reply(self._name, asked=item or None, waits=True)
        if run.status is RunStatus.INTERRUPTED:
            raise Conflict("the request was cancelled before it ended", thread_id=self._name)
        return Reply(self._name, response=last_answer(left), outcome=outcome_of(left))

    async def _failed(self, run: Run) -> Reply:
        """The call that was lost while it ran, if any: a person has to record its outcome first."""
        doubt = None
        if (run.error or {}).get("error") in failures.names_of(McpLost):
            doubt = await self._store.read(self._caller.tenant, threads.in_doubt, self._caller, self._thread_id)
        if doubt is None:
            raise _failure(self._name, run)
        return Reply(self._name, asked=doubt, waits=True)


def _failure(name: str, run: Run) -> AssistantFailed:
    message = (
        f"the assistant could not answer: {reason_of(run)}; search the log for {run.id}. The thread can be continued."
    )
    return AssistantFailed(message, id=run.id, thread_id=name)


def reason_of(run: Run) -> str:
    """Why the run failed. The details may contain secrets, so they are only in the log."""
    kind = str((run.error or {}).get("error"))
    return TOOK_TOO_LONG if run.status is RunStatus.TIMEOUT else failures.sentences().get(kind, failures.UNKNOWN)


def _interrupts(result: Any) -> list[str]:
    asked = result.get("__interrupt__", []) if isinstance(result, Mapping) else []
    return [str(interrupt["id"]) for interrupt in asked if isinstance(interrupt, Mapping) and "id" in interrupt]
