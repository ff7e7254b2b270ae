"""The checkpoint writes of an attempt that are not stored yet.

Except with `durability="sync"`, LangGraph goes on while a step is stored. A transaction for each write would cost a
short run more than its steps, so writes wait until the run itself waits for something, and are then stored together.
What is left at the end of the run is stored in the transaction that ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType

from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.runs import losses

Write = Callable[[Tx], None]

_IDLE_TURNS = 16
"""Turns of the event loop without a write, after which the run waits for something. Between two steps of a graph that
waits for nothing, LangGraph needs about half as many."""


class Backlog:
    """The error of a write is noted as a loss of the attempt, which ends the attempt. Nothing is stored after it: later
    writes refer to parts of earlier ones."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._loop = asyncio.get_running_loop()
        self._writes: list[Write] = []
        self._turns_left = 0
        self._storing: asyncio.Task[None] | None = None
        self._is_open = False
        self._failure: Exception | None = None

    def open(self) -> None:
        """Accepts writes from now on."""
        self._is_open = True

    @property
    def accepts(self) -> bool:
        """False where a node has an event loop of its own."""
        return self._is_open and asyncio.get_running_loop() is self._loop

    def add(self, write: Write) -> None:
        self._require_success()
        self._writes.append(write)
        if self._turns_left == 0 and self._storing is None:
            self._loop.call_soon(self._count_down)
        self._turns_left = _IDLE_TURNS

    def _count_down(self) -> None:
        self._turns_left -= 1
        if self._turns_left > 0:
            self._loop.call_soon(self._count_down)
        else:
            self._begin()

    def _begin(self) -> None:
        if self._writes and self._storing is None:
            self._storing = self._loop.create_task(self._store_all())

    async def _store_all(self) -> None:
        try:
            while self._writes:
                losses.require_none()
                await self._store.write(self._tenant, store_all, self._taken())
        except Exception as error:  # noqa: BLE001 - the end of the graph raises it
            losses.note(error)
            self._failure = error
            self._writes.clear()
        finally:
            self._storing = None

    def _taken(self) -> Sequence[Write]:
        taken, self._writes = self._writes, []
        return taken

    async def flush(self) -> None:
        """Stores all writes, before the state is read or a node with an event loop of its own writes."""
        if asyncio.get_running_loop() is self._loop:
            await self._stored()
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._stored(), self._loop))
        self._require_success()

    async def _stored(self) -> None:
        self._begin()
        await self._settled()

    async def _settled(self) -> None:
        if self._storing is not None:
            await asyncio.shield(self._storing)

    def _require_success(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def rest(self) -> Sequence[Write]:
        """The writes that the end of the run has to store; none after a failure."""
        await self._settled()
        return self._taken()

    async def __aenter__(self) -> Backlog:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits for what is being stored, since its failure has to end the attempt. A failed or cancelled run reads the
        state that it has reached."""
        if error is not None or losses.any_noted():
            await self._stored()
        else:
            await self._settled()


def store_all(tx: Tx, writes: Sequence[Write]) -> None:
    for write in writes:
        write(tx)
