"""The server's keeper for gates in its graphs: consumes grants in its store, fenced to the current attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from assent.gate.stored import StoreKeeper
from assent.kernel.canonical import Json
from assent.kernel.seals import Sealer
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.runs import losses
from assent.runs.checkpoints.saver import Scope

T = TypeVar("T")


class ServerKeeper(StoreKeeper):
    notes = False

    def __init__(self, store: Store, scope: Scope, sealer: Sealer | None = None) -> None:
        self._sealer = sealer
        self.attempt = scope.attempt
        self._store = store
        self._tenant = scope.tenant
        self._loop = asyncio.get_running_loop()

    def run(self, function: Callable[[Tx], T]) -> T:
        """Runs the function from a worker thread of a blocking tool. On the event loop it would deadlock."""
        if _on(self._loop):
            raise RuntimeError("a blocking gated function was called on the event loop: make it async")
        return asyncio.run_coroutine_threadsafe(self.arun(function), self._loop).result()

    async def arun(self, function: Callable[[Tx], T]) -> T:
        return await self._store.write(self._tenant, function)

    def seal(self, document: Json) -> str | None:
        if self._sealer is None:
            return None
        return self._sealer.seal({"tenant": self._tenant, "document": document})

    def failed(self, error: Exception) -> None:
        losses.note(error)


def _on(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
