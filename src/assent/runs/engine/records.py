"""Stores the outcome of an attempt.

The store can refuse an outcome, for example because a question cannot be shown to a person. The run must end anyway: a
reduced outcome is stored, and at the least the failure of the run.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from assent.kernel.store.ports import Store
from assent.runs.checkpoints.backlog import Write
from assent.runs.engine.attempts import is_lasting, retry_while_unavailable
from assent.runs.engine.endings import finish, give_up
from assent.runs.engine.feed import Feed
from assent.runs.project.failures import Failures, text_of
from assent.threads.bus import Bus
from assent.threads.model.frames import Frame
from assent.threads.model.runs import Outcome, Run, RunStatus
from assent.threads.rows.state.checkpoints import Attempt, Fenced

log = logging.getLogger(__name__)

_MOST_SECONDS_TO_FINISH = 10.0

Ending = Callable[[list[Frame]], Awaitable[None]]
"""One attempt to store an end, with the frames that close the stream."""


class Recorder:
    def __init__(self, store: Store, bus: Bus, is_gated: Callable[[str], bool], failures: Failures) -> None:
        self._store = store
        self._bus = bus
        self._is_gated = is_gated
        self._failures = failures

    async def record(self, tenant: str, run: Run, feed: Feed, outcome: Outcome, rest: Sequence[Write]) -> None:
        """Raises only if the attempt was fenced or the database is unavailable. `rest`: checkpoints to store with the
        outcome."""
        try:
            await feed.keep()
            return await self._finish(tenant, run, feed, outcome, rest)
        except Exception as error:
            if not is_lasting(error):
                raise
            refused = error
        outcomes = list(_reduced_outcomes(outcome, self._failures.of_run(refused, run.id)))
        log_failure("store outcome failed", run, refused)
        feed.drop_questions()
        await feed.send("error", outcomes[-1].error)
        for reduced in outcomes:
            try:
                return await self._finish(tenant, run, feed, reduced, rest)
            except Exception as error:
                if not is_lasting(error):
                    raise
                log_failure("store reduced outcome failed", run, error)
        await self._give_up(tenant, run, feed, outcomes[-1])

    async def _finish(self, tenant: str, run: Run, feed: Feed, outcome: Outcome, rest: Sequence[Write]) -> None:
        async def store(last: list[Frame]) -> None:
            shown, gated = self._bus.is_followed(feed.stream.topic), self._is_gated(run.graph_id)
            kept = (feed.stream, feed.kept(last))
            await self._store.write(
                tenant, finish, run, Attempt(run.id, run.attempt), outcome, rest, shown=shown, last=kept, gated=gated
            )

        await self._end(feed, outcome, store)

    async def _give_up(self, tenant: str, run: Run, feed: Feed, outcome: Outcome) -> None:
        async def store(last: list[Frame]) -> None:
            kept = (feed.stream, feed.kept(last))
            await self._store.write(tenant, give_up, run, Attempt(run.id, run.attempt), outcome, last=kept)

        await self._end(feed, outcome, store)

    async def _end(self, feed: Feed, outcome: Outcome, store: Ending) -> None:
        last, asked = feed.last(outcome.result), False

        async def try_to_store() -> None:
            """Fenced after an unconfirmed commit means that the commit succeeded."""
            nonlocal asked
            again, asked = asked, True
            try:
                await store(last)
            except Fenced:
                if not again:
                    raise

        await retry_while_unavailable(try_to_store, most_seconds=_MOST_SECONDS_TO_FINISH)
        await feed.end(last)


def log_failure(message: str, run: Run, error: BaseException, *, cover: Callable[[str], str] | None = None) -> None:
    """`cover` masks the thread's secrets in a text."""
    facts: dict[str, Any] = {"run_id": run.id, "thread_id": run.thread_id, "graph": run.graph_id}
    facts |= {"attempt": run.attempt, "error": type(error).__name__}
    if cover is None:
        return log.error(message, extra={**facts, "reason": text_of(error)}, exc_info=error)
    trace = cover("".join(traceback.format_exception(error)))
    log.error(message, extra={**facts, "reason": cover(text_of(error)), "traceback": trace})


def _reduced_outcomes(outcome: Outcome, refused: dict[str, str]) -> Iterator[Outcome]:
    """Reduced outcomes to store after a refusal: the state without its questions, then no state."""
    status = RunStatus.ERROR if outcome.status is RunStatus.SUCCESS else outcome.status
    message = f"the outcome of the run cannot be stored: {refused['message']}"
    error = outcome.error or {"error": refused["error"], "message": message}
    if not (outcome.unread or outcome.rolled_back):
        yield Outcome(status, outcome.values, next=outcome.next, error=error)
    yield Outcome(status, error=error, unread=True)
