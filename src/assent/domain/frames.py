"""One event of a run's stream, and the id a client hands back to go on after it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from assent.domain.runs import Run

ATTEMPT_STRIDE = 1_000_000
"""Each attempt of a run numbers its frames above whatever an earlier one reached."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

END = "end"
"""Closes a run's stream for everyone who follows it; its data is the run's result. Never sent to a client."""

STATE_UPDATE = "state_update"
"""Of a thread rather than of a run: its state was edited."""


@dataclass(frozen=True, slots=True)
class Frame:
    """`seq` counts from 1 within its run; `data` is one line of JSON; `id` is unique within the thread."""

    seq: int
    event: str
    data: bytes
    id: str


@dataclass(frozen=True, slots=True)
class Stream:
    """Whose frames they are: one attempt's of a run. A resumable stream can be read again from where it broke off."""

    tenant: str
    thread_id: str
    run_id: str
    attempt: int
    resumable: bool = False

    @property
    def topic(self) -> str:
        return self.run_id

    @property
    def thread_topic(self) -> str:
        return thread_topic(self.tenant, self.thread_id)


def thread_topic(tenant: str, thread_id: str) -> str:
    """What is followed by who follows a thread. Ids of threads are unique within their tenant only."""
    return f"thread:{tenant}:{thread_id}"


def seen_from_thread(frame: Frame, run_id: str) -> Frame:
    """Who follows a thread sees its runs come and go, not their results."""
    if frame.event != END:
        return frame
    return Frame(frame.seq, "metadata", b'{"status":"run_done","run_id":"%s"}' % run_id.encode(), frame.id)


def over(tenant: str, run: Run) -> tuple[Stream, Frame]:
    """The end of a stream that nobody writes any more: its run was cancelled before it began, or has been removed."""
    seq = run.attempt * ATTEMPT_STRIDE + 1
    last = Frame(seq, END, b"null", frame_id(run.created_at, seq))
    return Stream(tenant, run.thread_id, run.id, run.attempt), last


def frame_id(run_created: datetime, seq: int) -> str:
    """Sorted as well: the runs of a thread follow one another, so the run's time comes first."""
    return f"{moment(run_created)}-{seq}"


def seq_of(event_id: str) -> int | None:
    """The sequence number in a client's `Last-Event-ID`; 0 asks for everything, None is not one of ours."""
    position = position_of(event_id)
    return None if position is None else position[1]


def position_of(event_id: str) -> tuple[int, int] | None:
    """The run's time and the sequence number in a client's `Last-Event-ID`."""
    if event_id in ("-1", "0", "-"):
        return 0, 0
    found = re.fullmatch(r"([0-9]{1,18})-([0-9]{1,9})", event_id)
    return (int(found[1]), int(found[2])) if found else None


def moment(instant: datetime) -> int:
    """In microseconds: two runs of a thread are made in one millisecond easily."""
    return (instant - _EPOCH) // timedelta(microseconds=1)
