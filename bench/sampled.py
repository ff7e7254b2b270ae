"""Runs `assent` under a sampling profiler: `python bench/sampled.py SAMPLES COMMAND …`.

Every millisecond, each thread's processor time since the last sample is charged to the stack that it executes, so
waiting costs nothing and threads of every kind count. The sums begin anew at SIGUSR1, and on exit they are written to
SAMPLES as JSON.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

_EVERY_SECONDS = 0.001

Site = tuple[str, str]
"""A file and a function."""


class Sampler(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="sampler", daemon=True)
        self.own: Counter[Site] = Counter()
        self.total: Counter[Site] = Counter()
        self._spent: dict[int, int] = {}

    def run(self) -> None:
        sys.setswitchinterval(_EVERY_SECONDS)
        while True:
            time.sleep(_EVERY_SECONDS)
            for thread_id, frame in sys._current_frames().items():
                if thread_id != self.ident and (spent := self._newly_spent(thread_id)):
                    self._charge(frame, spent)

    def begin_anew(self, *_: object) -> None:
        self.own, self.total = Counter(), Counter()

    def _newly_spent(self, thread_id: int) -> int:
        """Nanoseconds of processor time since the last sample of this thread."""
        try:
            now = time.clock_gettime_ns(time.pthread_getcpuclockid(thread_id))
        except OSError:  # the thread has just ended
            return 0
        before, self._spent[thread_id] = self._spent.get(thread_id, now), now
        return max(now - before, 0)

    def _charge(self, frame: FrameType | None, spent: int) -> None:
        sites = list[Site]()
        while frame is not None:
            sites.append((frame.f_code.co_filename, frame.f_code.co_qualname))
            frame = frame.f_back
        self.own[sites[0]] += spent
        for site in set(sites):
            self.total[site] += spent


def _write(sampler: Sampler, file: Path) -> None:
    sums = [[*site, sampler.own[site] / 1e6, spent / 1e6] for site, spent in sampler.total.items()]
    file.write_text(json.dumps(sums), encoding="utf-8")


if __name__ == "__main__":
    sampler, file = Sampler(), Path(sys.argv[1])
    sys.argv[:] = ["assent", *sys.argv[2:]]
    sys.path[0] = os.getcwd()
    atexit.register(_write, sampler, file)
    signal.signal(signal.SIGUSR1, sampler.begin_anew)
    sampler.start()
    from assent.__main__ import main

    main()
