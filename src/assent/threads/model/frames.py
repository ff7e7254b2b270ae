"""One event of a run's stream, and the id by which a client resumes after it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from assent.threads.model.runs import Run

ATTEMPT_STRIDE = 1_000_000
"""Each attempt of a run numbers its frames above those of earlier attempts."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

END = "end"
"""Closes a run's stream for all followers; its data is the run's result. Never sent to a client."""

STATE_UPDATE = "state_update"
"""A frame of a thread rather than of a run: its state was edited."""


@dataclass(frozen=True, slots=True)
class Frame:
    """`seq` counts from 1 within its run; `data` is one line of JSON; `id` is unique within the thread."""

    seq: int
    event: str
    data: bytes
    id: str
    at: datetime | None = field(default=None, compare=False)
    """The time it was stored; None for a live frame, which is equal to the stored one."""


@dataclass(frozen=True, slots=True)
class Topic:
    """The subject of a follower: a run of its tenant, or a thread with all its runs. The tenant is part of it: ids of
    threads are unique within their tenant only, and knowing the id of a run gives no right to its frames."""

    tenant: str
    id: str
    of_thread: bool = False

    @property
    def name(self) -> str:
        """As it stands in notices between processes."""
        return f"thread:{self.tenant}:{self.id}" if self.of_thread else self.id


@dataclass(frozen=True, slots=True)
class Stream:
    """The stream of one attempt of a run. A resumable stream can be read again from where it broke off."""

    tenant: str
    thread_id: str
    run_id: str
    attempt: int
    resumable: bool = False

    @property
    def topic(self) -> Topic:
        return Topic(self.tenant, self.run_id)

    @property
    def thread_topic(self) -> Topic:
        return Topic(self.tenant, self.thread_id, of_thread=True)


def seen_from_thread(frame: Frame, run_id: str) -> Frame:
    """A frame for a thread's followers: they see runs start and end, not their results."""
    if frame.event != END:
        return frame
    return Frame(frame.seq, "metadata", b'{"status":"run_done","run_id":"%s"}' % run_id.encode(), frame.id)


def over(tenant: str, run: Run) -> tuple[Stream, Frame]:
    """The end of a stream without a writer: its run was cancelled before it began, or has been removed."""
    seq = run.attempt * ATTEMPT_STRIDE + 1
    last = Frame(seq, END, b"null", frame_id(run.created_at, seq))
    return Stream(tenant, run.thread_id, run.id, run.attempt), last


def frame_id(run_created: datetime, seq: int) -> str:
    """Sortable: the runs of a thread follow one another, so the run's time comes first."""
    return f"{moment(run_created)}-{seq}"


def seq_of(event_id: str) -> int | None:
    """The sequence number in a client's `Last-Event-ID`; 0 requests everything, None is not an id of ours."""
    position = position_of(event_id)
    return None if position is None else position[1]


def position_of(event_id: str) -> tuple[int, int] | None:
    """The run's time and the sequence number in a client's `Last-Event-ID`."""
    if event_id in ("-1", "0", "-"):
        return 0, 0
    match = re.fullmatch(r"([0-9]{1,18})-([0-9]{1,9})", event_id)
    return (int(match[1]), int(match[2])) if match else None


def moment(instant: datetime) -> int:
    """In microseconds: two runs of a thread can be created in one millisecond."""
    return (instant - _EPOCH) // timedelta(microseconds=1)
