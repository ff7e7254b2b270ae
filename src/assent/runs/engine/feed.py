"""A run's stream: numbers the events and publishes them on the bus.

Questions are held back until the run has ended, so that clients can answer as soon as they receive them.
"""

from __future__ import annotations

from typing import Any

from assent.kernel import jsonable
from assent.runs.upstream import INTERRUPT
from assent.threads.bus import Bus
from assent.threads.model.frames import ATTEMPT_STRIDE, END, Frame, Stream, frame_id
from assent.threads.model.runs import Run


class Feed:
    def __init__(self, bus: Bus, tenant: str, run: Run) -> None:
        self._bus = bus
        self._run = run
        self.stream = Stream(tenant, run.thread_id, run.id, run.attempt, bool(run.kwargs.get("resumable")))
        self._seq = (run.attempt - 1) * ATTEMPT_STRIDE
        self._held: list[tuple[str, Any]] = []

    async def send(self, event: str, data: Any) -> None:
        if isinstance(data, dict) and INTERRUPT in data:
            self._held.append((event, data))
        elif self._bus.is_read(self.stream):
            await self._bus.publish(self.stream, self._frame(event, data))
        else:  # the number is taken all the same: it is what a follower resumes from
            self._seq += 1

    def drop_questions(self) -> None:
        """Drops the held questions, because the run has failed."""
        self._held.clear()

    async def keep(self) -> None:
        """Stores pending frames before the end of the run is announced."""
        await self._bus.flush(self.stream)

    def last(self, result: Any) -> list[Frame]:
        """The held questions and the end."""
        return [self._frame(event, data) for event, data in [*self._held, (END, result)]]

    def kept(self, last: list[Frame]) -> list[Frame]:
        """The last frames that the ending transaction has to store."""
        if self._bus.shared:
            return last
        return last[:-1] if self.stream.resumable else []

    async def end(self, last: list[Frame]) -> None:
        await self._bus.end(self.stream, *last)

    def _frame(self, event: str, data: Any) -> Frame:
        self._seq += 1
        return Frame(self._seq, event, jsonable.dump(data), frame_id(self._run.created_at, self._seq))
