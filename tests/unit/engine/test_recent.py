"""What a process keeps of loaded parts is limited, also if threads of the store add to it at the same time."""

import sys
from collections.abc import Iterator
from threading import Thread

import pytest

from assent.runs.checkpoints.recent import Recent
from assent.threads.model.parts import Part

SIZE, COUNT, THREADS = 100, 10_000, 4


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def add(recent: Recent, thread: int, count: int = COUNT) -> None:
    for number in range(count):
        recent.add(f"{thread} {number}".encode(), Part(b"", "msgpack", b"x" * SIZE))


def test_what_threads_add_at_the_same_time_counts_for_the_limit() -> None:
    """Half of the limit is a little less than what the threads add, so as much again drops their first parts."""
    added = THREADS * COUNT
    half = added * 97 // 100
    recent = Recent(most=2 * half * SIZE)
    threads = [Thread(target=add, args=(recent, number)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    add(recent, THREADS, half * 2 - added)
    kept = recent.get(b"0 0")
    assert kept is not None, "the control: the limit is not reached yet"

    add(recent, THREADS + 1, 100)
    assert recent.get(b"1 0") is None
