"""The progress of a long command: a bar on a terminal, and lines otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from assent.surfaces.cli import output

OnProgress = Callable[[int, int], None]
"""The number of finished steps, and the total."""


@contextmanager
def shown(things: str, *, lines_every: int) -> Iterator[OnProgress]:
    if not sys.stderr.isatty():
        yield _Lines(things, lines_every)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(things, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """A line whenever so many more steps are finished, and at the end."""

    def __init__(self, things: str, every: int) -> None:
        self._things = things
        self._every = every
        self._lines = 0

    def __call__(self, done: int, total: int) -> None:
        if done // self._every > self._lines or done == total:
            self._lines = done // self._every
            output.say(f"{self._things}: {done} of {total}", to_stderr=True)
