"""The interface of import sources."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from assent.threads.rows.memory.items import Put

if TYPE_CHECKING:
    from langgraph.checkpoint.base import CheckpointTuple

    from assent.runs.project.graphs import AnyPregel

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ForeignThread:
    """A thread of the source. `busy`: a run is in progress there. `began`: a graph has run on it."""

    id: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    busy: bool = False
    began: bool = True

    @property
    def graph_id(self) -> str | None:
        named = self.metadata.get("graph_id")
        return named if isinstance(named, str) else None


@dataclass(frozen=True, slots=True)
class Past:
    """The checkpoints of a thread, oldest first. `notes`: remarks on data that the source does not export.

    `resend`: nodes whose sends the source omits; their edges are evaluated again on the last checkpoint. `asked`: the
    arguments of the thread's last run, and `next`: the thread's next nodes, if the source exports them."""

    checkpoints: Sequence[CheckpointTuple] = ()
    notes: tuple[str, ...] = ()
    resend: tuple[str, ...] = ()
    asked: Json = field(default_factory=dict)
    next: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ForeignAssistant:
    """An assistant of the source: its current version number, and all versions, oldest first."""

    id: str
    graph_id: str
    version: int
    versions: Sequence[Json]


class Source(Protocol):
    name: str
    """The name in reports and the timeline, without credentials."""

    def assistants(self) -> AsyncIterator[ForeignAssistant]: ...

    def memories(self) -> AsyncIterator[Put]: ...

    def threads(self) -> AsyncIterator[ForeignThread]: ...

    async def thread_count(self) -> int: ...

    async def past(self, thread: ForeignThread, graph: AnyPregel) -> Past:
        """The history of the thread, in the types of its graph."""
        ...

    async def close(self) -> None: ...
