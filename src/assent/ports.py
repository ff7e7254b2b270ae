"""What services need from the world. `app.py` is the only place that knows who provides it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from assent.store.transaction import Handover, Tx

P = ParamSpec("P")
T = TypeVar("T")


class Queue(Protocol):
    """Takes runs whose turn it is to where they are executed: this process, or any worker on the same database."""

    def take(self, handovers: Sequence[Handover]) -> None:
        """Called right after the transaction that handed them over was committed."""
        ...

    def cancel(self, tenant: str, run_id: str) -> None:
        """Stops a run that is being executed. What becomes of it is read from its row."""
        ...


class Store(Protocol):
    """Runs functions over transactions. A `tenant` of None opens one across tenants: for the system itself only."""

    queue: Queue | None
    bells: dict[str, Callable[[], None]]
    """Who is called, and for what, right after a transaction that rang for it was committed."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def write(
        self, tenant: str | None, function: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Runs `function` in one durable transaction; returns only after it is committed. It may run more than once."""
        ...

    async def read(
        self, tenant: str | None, function: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Runs `function` over one consistent snapshot that it cannot change."""
        ...

    async def backup(self, target: str) -> None:
        """Writes a consistent copy of the whole database to a new file while the server goes on."""
        ...


Json = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""
