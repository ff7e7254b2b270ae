"""Tells those who follow what happens to a thread beside its runs: it was edited, or removed with runs on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assent.domain.frames import STATE_UPDATE, Frame, Stream, frame_id, over
from assent.domain.ids import new_id
from assent.domain.runs import Run
from assent.engine import jsonable
from assent.ports import Bus, Store
from assent.store import frames
from assent.store.transaction import Tx


class News:
    def __init__(self, store: Store, bus: Bus) -> None:
        self._store = store
        self._bus = bus

    async def edited(self, tenant: str, thread_id: str, state: dict[str, Any]) -> None:
        """A stream of its own with one frame: followers in other processes read it from the table like any other."""
        stream = Stream(tenant, thread_id, new_id(), 0)
        told = jsonable.dump({"state": state, "thread_id": thread_id})
        await self._bus.end(stream, await self._store.write(tenant, _keep, stream, told))

    async def removed(self, tenant: str, runs: Sequence[Run]) -> None:
        for run in runs:
            await self._bus.end(*over(tenant, run))


def _keep(tx: Tx, stream: Stream, told: bytes) -> Frame:
    frame = Frame(1, STATE_UPDATE, told, frame_id(tx.now(), 1))
    frames.append(tx, stream, [frame])
    return frame
