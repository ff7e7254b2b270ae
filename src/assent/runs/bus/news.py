"""Publishes changes of a thread outside its runs: edits, and deletion with active runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assent.kernel import jsonable
from assent.kernel.ids import new_id
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.threads.bus import Bus
from assent.threads.model.frames import STATE_UPDATE, Frame, Stream, frame_id, over
from assent.threads.model.runs import Run
from assent.threads.rows import frames


class News:
    def __init__(self, store: Store, bus: Bus) -> None:
        self._store = store
        self._bus = bus

    async def edited(self, tenant: str, thread_id: str, state: dict[str, Any]) -> None:
        """Publishes a separate stream with one frame, which followers in other processes read from the table."""
        stream = Stream(tenant, thread_id, new_id(), 0)
        payload = jsonable.dump({"state": state, "thread_id": thread_id})
        await self._bus.end(stream, await self._store.write(tenant, _keep, stream, payload))

    async def removed(self, tenant: str, runs: Sequence[Run]) -> None:
        for run in runs:
            await self._bus.end(*over(tenant, run))


def _keep(tx: Tx, stream: Stream, payload: bytes) -> Frame:
    frame = Frame(1, STATE_UPDATE, payload, frame_id(tx.now(), 1))
    frames.append(tx, stream, [frame])
    return frame
