"""What services need from the world. `app.py` is the only place that knows who provides it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from assent.domain.access import Principal
from assent.domain.frames import Frame, Stream
from assent.domain.visibility import Visible
from assent.store.transaction import Handover, Places, Tx

P = ParamSpec("P")
T = TypeVar("T")


class Queue(Protocol):
    """Takes runs whose turn it is to where they are executed: this process, or any worker on the same database."""

    @property
    def active(self) -> int:
        """How many runs this process executes now."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None:
        """Lets runs come to their end for a while, then gives the rest back."""
        ...

    @property
    def places(self) -> Places | None:
        """Where this process executes runs: for how many more it has a place. A run that a committed transaction has
        begun comes to `take` with its place."""
        ...

    async def defer(self, connection: Any, handovers: Sequence[Handover]) -> None:
        """Called inside the transaction that hands them over, where the database is shared: its driver's connection."""
        ...

    def take(self, handovers: Sequence[Handover]) -> None:
        """Called right after the transaction that handed them over was committed."""
        ...

    async def cancel(self, tenant: str, run_id: str) -> None:
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


class Authorizer(Protocol):
    """Says what the project's auth handlers allow a caller, beyond scopes and tenants."""

    async def authorize(self, caller: Principal, resource: str, action: str, value: dict[str, Any]) -> Visible | None:
        """Raises where the caller may not, and otherwise says which rows are there for them; None: all. `value` is
        what they ask for, by the names of `langgraph_sdk.auth.types`. Its `metadata` may come back changed."""
        ...


class FellBehind(Exception):
    """This follower reads more slowly than the run writes."""


class Subscription(Protocol):
    """One follower of one topic: a run's id, or what `thread_topic` says."""

    async def next(self) -> Frame:
        """The next frame, once there is one. `FellBehind` where the bus cannot wait for this follower."""
        ...

    async def end(self) -> Frame:
        """Waits for the end and lets everything before it pass."""
        ...

    def close(self) -> None: ...


class Bus(Protocol):
    """Carries live frames from where a run is executed to whoever follows it, here or in another process."""

    @property
    def shared(self) -> bool:
        """Whether followers may be elsewhere. They read the table, so the end has to be in it when the run has ended;
        whoever delivers it to them marks the questions in it as shown."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def follow(self, topic: str, *, after: int | None = 0) -> Subscription:
        """Frames with a higher number than `after`, as far as they are not in the table already; None: only what is
        published from now on. Follow before creating a run, and nothing is missed."""
        ...

    def is_followed(self, run_id: str) -> bool:
        """Whether someone in this process follows the run, and will be given its end by `end`."""
        ...

    async def publish(self, stream: Stream, frame: Frame) -> None: ...

    async def flush(self, stream: Stream) -> None:
        """Returns when everything published that has to be in the table is there."""
        ...

    async def end(self, stream: Stream, *last: Frame) -> None:
        """Tells the followers that the run has ended: after these frames nothing will be published on this stream."""
        ...


Json = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""
