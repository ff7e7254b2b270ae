"""A run's stream as it is written: numbered, sent to whoever follows, and kept where the stream is resumable."""

from __future__ import annotations

from typing import Any

from assent.bus.memory import MemoryBus
from assent.domain.frames import END, Frame, frame_id
from assent.domain.runs import Run
from assent.engine import jsonable
from assent.ports import Store
from assent.store import frames

_KEEP_EVERY = 64
_ATTEMPT_STRIDE = 1_000_000


class Feed:
    def __init__(self, bus: MemoryBus, store: Store, tenant: str, run: Run) -> None:
        self._bus = bus
        self._store = store
        self._tenant = tenant
        self._run = run
        self._resumable = bool(run.kwargs.get("resumable"))
        self._unkept: list[Frame] = []
        self._seq = (run.attempt - 1) * _ATTEMPT_STRIDE  # above whatever an earlier attempt reached

    async def send(self, event: str, data: Any) -> None:
        frame = self._publish(event, jsonable.dump(data), unkept=self._resumable)
        if self._resumable:
            self._unkept.append(frame)
            if len(self._unkept) >= _KEEP_EVERY:
                await self.keep()

    async def keep(self) -> None:
        """Writes down what is not yet, before anyone is told that the run has ended."""
        if self._unkept:
            batch, self._unkept = self._unkept, []
            await self._store.write(self._tenant, frames.append, self._run.id, batch)
            self._bus.kept(self._run.id, batch[-1].seq)

    def end(self, result: Any) -> None:
        self._publish(END, jsonable.dump(result))
        self._bus.forget(self._run.id)

    def _publish(self, event: str, data: bytes, *, unkept: bool = False) -> Frame:
        self._seq += 1
        frame = Frame(self._seq, event, data, frame_id(self._run.created_at, self._seq))
        self._bus.publish(self._run.id, frame, unkept=unkept)
        self._bus.publish(f"thread:{self._run.thread_id}", self._for_thread(frame))
        return frame

    def _for_thread(self, frame: Frame) -> Frame:
        """Who follows a thread sees its runs come and go, not their results."""
        if frame.event != END:
            return frame
        return Frame(frame.seq, "metadata", jsonable.dump({"status": "run_done", "run_id": self._run.id}), frame.id)
