"""A server under a profiler, for `bench/profile.py --calls`. It runs where Assent is installed without this package."""

from __future__ import annotations

import cProfile
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path


def serve(folder: Path, arguments: list[str]) -> None:
    """The first signal begins a measurement, the second one writes it and ends the process."""
    profiles: dict[str, cProfile.Profile] = {}
    threading.Thread.run = _profiled(threading.Thread.run, profiles)  # type: ignore[assignment,method-assign]
    loop = profiles["event loop"] = cProfile.Profile(time.thread_time)

    def begin_or_end(*_: object) -> None:
        if not signalled.is_set():
            signalled.set()
            loop.enable()
            for profile in profiles.values():
                profile.clear()
            return
        for name, profile in profiles.items():
            if profile.getstats():  # a thread that did nothing has none, which cannot be read back
                profile.dump_stats(folder / f"{name}.profile")
        os._exit(0)

    signalled = threading.Event()
    signal.signal(signal.SIGUSR1, begin_or_end)
    from assent.__main__ import main as command

    sys.argv = ["assent", *arguments]
    command()


def _profiled(
    run: Callable[[threading.Thread], None], profiles: dict[str, cProfile.Profile]
) -> Callable[[threading.Thread], None]:
    def profiled(thread: threading.Thread) -> None:
        profiles[thread.name] = profile = cProfile.Profile(time.thread_time)
        profile.enable()
        run(thread)

    return profiled


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2:])
