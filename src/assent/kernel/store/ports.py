"""The store as use cases need it: transactions, and the queue that takes over runs when they commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from assent.kernel.limits import Limits, Usage
from assent.kernel.store.transaction import Handover, Marks, Places, Tx

P = ParamSpec("P")
T = TypeVar("T")


class Queue(Protocol):
    """Executes the runs that are due: in this process, or in any worker on the same database."""

    @property
    def active(self) -> int:
        """The number of runs that this process executes now."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None:
        """Waits for runs for a while, then hands the rest back."""
        ...

    @property
    def places(self) -> Places | None:
        """The free execution slots of this process, where it executes runs. A run that a committed transaction has
        begun comes to `take` with its slot."""
        ...

    async def defer(self, connection: Any, handovers: Sequence[Handover]) -> None:
        """Called inside the transaction of the handover, on a shared database, with its driver's connection."""
        ...

    def take(self, handovers: Sequence[Handover]) -> None:
        """Called right after the transaction of the handover was committed."""
        ...

    async def cancel(self, tenant: str, run_id: str) -> None:
        """Stops a run that is being executed. Its row determines the outcome."""
        ...


class Store(Protocol):
    """Runs functions over transactions. A `tenant` of None opens one across tenants: for the system itself only."""

    queue: Queue | None
    bells: dict[str, Callable[..., None]]
    """Callbacks by bell, called right after the commit of a transaction that rang it, with what it was rung about."""
    limits: Limits
    usage: Usage
    marks: Marks
    """The secret arguments of the tools of this process' graphs."""

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
        """Writes a consistent copy of the whole database to a new file while the server runs."""
        ...
