"""One event of a run's stream, and the id a client hands back to go on after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

END = "end"
"""Closes a run's stream for everyone who follows it; its data is the run's result. Never sent to a client."""


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


def frame_id(run_created: datetime, seq: int) -> str:
    """Sorted as well: the runs of a thread follow one another, so the run's time comes first."""
    return f"{int(run_created.timestamp() * 1000)}-{seq}"


def seq_of(event_id: str) -> int | None:
    """The sequence number in a client's `Last-Event-ID`; 0 asks for everything, None is not one of ours."""
    if event_id in ("-1", "0", "-", "0-0"):
        return 0
    _, dash, seq = event_id.rpartition("-")
    return int(seq) if dash and seq.isascii() and seq.isdigit() else None
