"""One turn of a talk with the assistant: from what was said to it until it answers, or asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from assent.domain.access import Principal
from assent.domain.frames import END
from assent.domain.runs import Run, RunStatus
from assent.errors import AssistantFailed, Conflict
from assent.ports import FellBehind, Store, Subscription
from assent.services import assistant_threads
from assent.services.assistant_views import Reply, Words, begins, last_answer, words_of
from assent.services.runs import Runs

_LOOK_EVERY = 1.0
_FAILED = "its model, or a server that it needs, failed"
_FAILURES = {
    "McpFailed": "the MCP server that it needs does not answer",
    "McpLost": "the MCP server that it needs was lost in the middle of a call",
    "ConfigError": "it is not configured rightly",
    "ModelFailed": "its model failed",
}
"""What an error of ours in a run says, without its details."""


@dataclass(frozen=True, slots=True)
class Replied:
    """A turn that is over before anything ran."""

    known: Reply

    def close(self) -> None:
        return

    async def heard(self) -> AsyncGenerator[Words | None]:
        return
        yield

    async def reply(self) -> Reply:
        return self.known


class Turn:
    """Follows its run from where it is made. `reply` ends it, and has to be called."""

    def __init__(self, store: Store, runs: Runs, caller: Principal, name: str, thread_id: str, run_id: str) -> None:
        self._store = store
        self._runs = runs
        self._caller = caller
        self._name = name
        self._thread_id = thread_id
        self.run_id = run_id
        self._subscription: Subscription = runs.follow(run_id)
        self._whole = False
        self._run: Run | None = None
        self._left: Any = None

    def close(self) -> None:
        self._subscription.close()

    async def heard(self) -> AsyncGenerator[Words | None]:
        """What it says while it says it, until it is done; None where it is silent for a while."""
        while not await self._is_over():
            async for words in self._news():
                yield words
            yield None

    async def reply(self) -> Reply:
        """What it says in the end, or asks."""
        try:
            async for _ in self.heard():
                pass
            return await self._reply()
        finally:
            self.close()

    async def _is_over(self) -> bool:
        if self._run is None:
            run, lost = await self._store.read(self._caller.tenant, assistant_threads.run_of, self.run_id)
            if lost:
                raise Conflict("the thread has moved on, and does not ask this any more")
            self._run = run if run is not None and not run.status.active else None
        return self._run is not None

    async def _news(self) -> AsyncIterator[Words]:
        """Whoever comes late hears nothing rather than the half of it."""
        try:
            while True:
                async with asyncio.timeout(_LOOK_EVERY):
                    frame = await self._subscription.next()
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

    async def _reply(self) -> Reply:
        run, left = self._run, self._left
        assert run is not None
        if run.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
            raise _failure(self._name, run)
        if left is None:
            left = await self._runs.result(self._caller, self._thread_id, run.id)
        stopped_for = assistant_threads.stopped_for
        found = await self._store.read(
            self._caller.tenant, stopped_for, self._caller, self._thread_id, _interrupts(left)
        )
        if found is not None:
            return Reply(self._name, asked=found or None, waits=True)
        if run.status is RunStatus.INTERRUPTED:
            raise Conflict("it was stopped before it was done", thread_id=self._name)
        return Reply(self._name, response=last_answer(left))


def _failure(name: str, run: Run) -> AssistantFailed:
    """What exactly went wrong may hold anything, so only the log tells it."""
    kind = str((run.error or {}).get("error"))
    what = "it took too long" if run.status is RunStatus.TIMEOUT else _FAILURES.get(kind, _FAILED)
    told = f"the assistant could not answer: {what}; the log has it under {run.id}. The thread can be continued."
    return AssistantFailed(told, id=run.id, thread_id=name)


def _interrupts(result: Any) -> list[str]:
    asked = result.get("__interrupt__", []) if isinstance(result, Mapping) else []
    return [str(one["id"]) for one in asked if isinstance(one, Mapping) and "id" in one]
