"""A tenant's view of the store with uncommitted writes, which only reads through the view see.

The checkpointer uses it while a state is read or edited. LangGraph creates configs of its own (for subgraphs, after
every superstep) without the tenant, so the view fixes the tenant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx

P = ParamSpec("P")
T = TypeVar("T")

Write = Callable[[Tx], object]


class Draft:
    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self.held: list[Write] = []

    async def read(
        self, tenant: str | None, function: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Reads after the held writes, in a transaction that is rolled back."""
        if not self.held:
            return await self._store.read(self._tenant, function, *args, **kwargs)
        try:
            await self._store.write(self._tenant, _peek, tuple(self.held), lambda tx: function(tx, *args, **kwargs))
        except _Seen as seen:
            result: T = seen.result
            return result
        raise AssertionError("unreachable")

    async def write(
        self, tenant: str | None, function: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> None:
        self.held.append(lambda tx: function(tx, *args, **kwargs))


class _Seen(Exception):
    """Rolls back the transaction and returns the result of the read."""

    def __init__(self, result: Any) -> None:
        self.result = result


def _peek(tx: Tx, held: tuple[Write, ...], function: Callable[[Tx], Any]) -> None:
    for write in held:
        write(tx)
    raise _Seen(function(tx))
