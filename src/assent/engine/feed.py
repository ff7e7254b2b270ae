"""A run's stream as it is written: each event numbered, and given to the bus."""

from __future__ import annotations

from typing import Any

from assent.domain.frames import ATTEMPT_STRIDE, END, Frame, Stream, frame_id
from assent.domain.runs import Run
from assent.engine import jsonable
from assent.ports import Bus


class Feed:
    def __init__(self, bus: Bus, tenant: str, run: Run) -> None:
        self._bus = bus
        self._run = run
        self.stream = Stream(tenant, run.thread_id, run.id, run.attempt, bool(run.kwargs.get("resumable")))
        self._seq = (run.attempt - 1) * ATTEMPT_STRIDE

    async def send(self, event: str, data: Any) -> None:
        await self._bus.publish(self.stream, self._frame(event, data))

    async def keep(self) -> None:
        """Writes down what is not yet, before anyone is told that the run has ended."""
        await self._bus.flush(self.stream)

    def last(self, result: Any) -> Frame:
        return self._frame(END, result)

    async def end(self, last: Frame) -> None:
        await self._bus.end(self.stream, last)

    def _frame(self, event: str, data: Any) -> Frame:
        self._seq += 1
        return Frame(self._seq, event, jsonable.dump(data), frame_id(self._run.created_at, self._seq))
