"""The server as the keeper of the gates in the graphs it runs: grants are consumed in its store, by the attempt that
still has the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from assent.engine.checkpoints import Scope
from assent.gate.keeper import Keeper
from assent.ports import Store
from assent.store.transaction import Tx

T = TypeVar("T")


class ServerKeeper(Keeper):
    def __init__(self, store: Store, scope: Scope) -> None:
        self.attempt = scope.attempt
        self._store = store
        self._tenant = scope.tenant
        self._loop = asyncio.get_running_loop()

    def run(self, function: Callable[[Tx], T]) -> T:
        """From a thread, where tools that block run; on the loop itself it would wait for itself."""
        if _on(self._loop):
            raise RuntimeError("a gated function that blocks was called on the event loop: make it async")
        return asyncio.run_coroutine_threadsafe(self.arun(function), self._loop).result()

    async def arun(self, function: Callable[[Tx], T]) -> T:
        return await self._store.write(self._tenant, function)


def _on(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
