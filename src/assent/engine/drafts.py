"""The store as one tenant sees it, with writes that are held back: later reads see them, nobody else does.

It stands below a checkpointer while a state is read or edited. LangGraph makes configs of its own on the way (into
subgraphs, after every superstep), without the mark that says whose thread it is; a view that knows its tenant cannot
go astray.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from assent.ports import Store
from assent.store.transaction import Tx

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
        """As if the held writes had been made: they are, in a transaction that is given up afterwards."""
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
    """Ends a transaction that must not be kept, and carries out of it what was found there."""

    def __init__(self, result: Any) -> None:
        self.result = result


def _peek(tx: Tx, held: tuple[Write, ...], function: Callable[[Tx], Any]) -> None:
    for write in held:
        write(tx)
    raise _Seen(function(tx))
