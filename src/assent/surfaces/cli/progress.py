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
        yield lambda done, total: _line(things, done, total, lines_every)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(things, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _line(things: str, done: int, total: int, lines_every: int) -> None:
    if done % lines_every == 0 or done == total:
        output.say(f"{things}: {done} of {total}", to_stderr=True)
