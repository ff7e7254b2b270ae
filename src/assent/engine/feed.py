"""A run's stream as it is written: each event numbered, and given to the bus.

What asks a person is held back until the run has ended with it, a moment later: who is told can answer at once.
"""

from __future__ import annotations

from typing import Any

from assent.domain.frames import ATTEMPT_STRIDE, END, Frame, Stream, frame_id
from assent.domain.runs import Run
from assent.engine import jsonable
from assent.engine.streaming import INTERRUPT
from assent.ports import Bus


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
        else:
            await self._bus.publish(self.stream, self._frame(event, data))

    async def keep(self) -> None:
        """Writes down what is not yet, before anyone is told that the run has ended."""
        await self._bus.flush(self.stream)

    def last(self, result: Any) -> list[Frame]:
        """What was held back, and the end."""
        return [self._frame(event, data) for event, data in [*self._held, (END, result)]]

    def kept(self, last: list[Frame]) -> list[Frame]:
        """Those of the last frames that have to be in the table when the run has ended."""
        if self._bus.shared:
            return last
        return last[:-1] if self.stream.resumable else []

    async def end(self, last: list[Frame]) -> None:
        await self._bus.end(self.stream, *last)

    def _frame(self, event: str, data: Any) -> Frame:
        self._seq += 1
        return Frame(self._seq, event, jsonable.dump(data), frame_id(self._run.created_at, self._seq))
