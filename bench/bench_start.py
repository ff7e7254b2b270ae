"""Cold start of `assent dev` on an empty project: processor time until it answers.

Processor time rather than the clock, so that the figure holds on a busy machine. Bytecode is there, as after
`make setup`: this measures starting, not compiling.
"""

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.rows import Row, at_most
from bench.served import assent, serving

ROUNDS = 5
TARGET = 1.5


def run() -> list[Row]:
    _start_twice()  # compiles what is not compiled yet
    fresh, existing = zip(*(_start_twice() for _ in range(ROUNDS)), strict=True)
    return [
        at_most("start: assent dev, new database", median(fresh), "CPU s", target=TARGET),
        at_most("start: assent dev, existing database", median(existing), "CPU s", target=TARGET),
    ]


def _start_twice() -> tuple[float, float]:
    """The first start makes the database, the second one finds it."""
    with TemporaryDirectory(prefix="assent-bench-") as project:
        return _start(Path(project)), _start(Path(project))


def _start(project: Path) -> float:
    with serving(assent, project) as served:
        return served.cpu_seconds()
