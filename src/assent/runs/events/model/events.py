"""One event of the protocol, and its number.

The number (`seq`) is the client's position in the thread. It grows over all runs of the thread, and is the same on
every connection, so that a client can resume anywhere. It consists of the time at which the run began and the place of
the event in the run. No run has eight events in a microsecond, so the numbers of two runs do not overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

_FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)
_PER_MICROSECOND = 8
"""With this, numbers stay exact in JavaScript until 2060."""

REQUESTED = "input.requested"


@dataclass(frozen=True, slots=True)
class Event:
    id: str
    """The same on every connection: clients drop an event whose id they have seen."""
    seq: int
    method: str
    namespace: Sequence[str]
    data: Any
    at: int
    """In milliseconds since 1970."""
    node: str | None = None

    @property
    def channel(self) -> str:
        return "input" if self.method == REQUESTED else self.method

    def view(self) -> dict[str, Any]:
        params = {"namespace": list(self.namespace), "timestamp": self.at, "data": self.data}
        named = {} if self.node is None else {"node": self.node}
        return {
            "type": "event",
            "event_id": self.id,
            "seq": self.seq,
            "method": self.method,
            "params": params | named,
        }


def base_of(began: datetime) -> int:
    """The number before the first event of a run that began at this time."""
    return (began - _FIRST_DAY) // timedelta(microseconds=1) * _PER_MICROSECOND


def milliseconds(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)
