"""A run as a call of another program: begun, awaited, and continued where it paused. MCP and A2A are built on it.

Every rule is that of the runs API, because every step is one of its use cases: a thread that the caller may not read
does not exist. One rule is stricter: the clients are programs, so nothing is decided here, even with a person's key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assent.errors import BadRequest, Invalid
from assent.identity.model.access import Principal, Scope
from assent.review.dialects.answers import is_interrupt_id
from assent.runs.runs import Runs
from assent.runs.threads.threads import Threads
from assent.threads.bus import Subscription
from assent.threads.model.runs import Run, RunStatus
from assent.threads.model.threads import Thread
from assent.threads.run_requests import RunRequest


@dataclass(frozen=True, slots=True)
class Pause:
    """The questions that a thread waits with, and the breakpoint that it stopped at."""

    questions: tuple[dict[str, Any], ...] = ()
    """Each `{id, value}`, with `response_schema` where it has one."""
    items: Mapping[str, str] = field(default_factory=dict)
    """Interrupt id → item, of the questions that only a person may answer."""
    stopped_before: tuple[str, ...] = ()

    @property
    def is_gated(self) -> bool:
        return bool(self.items)


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a call: its values, its error, or its pause. `canceled`: somebody stopped the run."""

    thread_id: str
    values: Any = None
    error: dict[str, Any] | None = None
    pause: Pause | None = None
    canceled: bool = False


@dataclass(frozen=True, slots=True)
class Begun:
    run: Run
    frames: Subscription


class Calls:
    def __init__(self, runs: Runs, threads: Threads) -> None:
        self._runs = runs
        self._threads = threads

    async def begin(self, caller: Principal, thread_id: str | None, request: RunRequest) -> Begun:
        return Begun(*await self._runs.begin(caller.without(Scope.DECIDE), thread_id, request))

    async def end(self, caller: Principal, begun: Begun) -> Ended:
        """Waits until the run ends."""
        try:
            last = await begun.frames.end()
        finally:
            begun.frames.close()
        return await self.ended(caller, begun.run, json.loads(last.data))

    async def ended(self, caller: Principal, run: Run, result: Any) -> Ended:
        """The end of a run whose result is known."""
        if isinstance(result, dict) and isinstance(error := result.get("__error__"), dict):
            return Ended(run.thread_id, error=error)
        current = await self._runs.get(caller, run.thread_id, run.id)
        thread = await self._threads.get(caller, run.thread_id)
        stopped = current.status is RunStatus.INTERRUPTED
        if isinstance(result, dict):
            result = {name: value for name, value in result.items() if name != "__interrupt__"}
        return Ended(run.thread_id, result, pause=await self.pause(caller, thread), canceled=stopped)

    async def pause(self, caller: Principal, thread: Thread) -> Pause | None:
        """The pause of a thread without an active run."""
        questions, stopped = tuple(thread.pending), tuple(thread.next or ())
        if not questions and not stopped:
            return None
        items = await self._threads.gated_questions(caller, thread.id)
        return Pause(questions, items, () if questions else stopped)

    async def resume(self, caller: Principal, thread_id: str, answers: Mapping[str, Any] | None) -> Begun | Ended:
        """Answers the questions of a thread, by interrupt id, or continues from its breakpoint. Without answers, it
        follows the thread's run, or returns the present state: a person may have decided meanwhile."""
        thread = await self._threads.get(caller, thread_id)
        newest = next(iter(await self._runs.of_thread(caller, thread_id, limit=1)), None)
        if newest is None:
            raise BadRequest("the thread has no runs yet")
        if answers:
            _require_ids(answers)
            request = RunRequest(newest.assistant_id, command={"resume": dict(answers)})
            return await self.begin(caller, thread_id, request)
        if newest.status.active:
            return await self.follow(caller, newest)
        pause = await self.pause(caller, thread)
        if pause is not None and pause.stopped_before and not pause.is_gated:
            return await self.begin(caller, thread_id, RunRequest(newest.assistant_id))
        return await self.ended(caller, newest, await self._runs.result(caller, thread_id, newest.id))

    async def discard(self, caller: Principal, thread_id: str) -> None:
        """Deletes the thread of a call that ended without a pause."""
        await self._threads.delete(caller, thread_id)

    async def follow(self, caller: Principal, run: Run) -> Begun | Ended:
        """The rest of a run that has begun before."""
        frames = await self._runs.follow_now(caller, run.id)
        try:
            current = await self._runs.get(caller, run.thread_id, run.id)  # again: it may have ended before
            if current.status.active:
                return Begun(run, await self._runs.shown(frames, caller, run.thread_id))
        except BaseException:
            frames.close()
            raise
        frames.close()
        return await self.ended(caller, run, await self._runs.result(caller, run.thread_id, run.id))


def _require_ids(answers: Mapping[str, Any]) -> None:
    """An object with any other key would be the answer itself, by position."""
    for name in answers:
        if not is_interrupt_id(name):
            raise Invalid(f"answers: {name[:100]!r} is not the id of a question")
