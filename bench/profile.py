"""Shows where a server spends its processor time: `python -m bench.profile [GRAPH] [--turns N] [--long N] [--calls]`.

The graphs are those of `bench/graphs`. A conversation (`chat`) can first be made long. Code that runs for less than a
millisecond at a time is charged to the event loop below it.

With `--calls`, every thread has a profiler of its own, by the thread's CPU time, which makes the server slower. The
calls per run do not depend on the machine or on what else it does, so two versions can be compared by them.
"""

from __future__ import annotations

import argparse
import json
import pstats
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.bench_growth import said
from bench.clients import Client
from bench.served import Served, assent, serving, workplace

SHOWN = 40
_SAMPLED = Path(__file__).parent / "sampled.py"
_PROFILED = Path(__file__).parent / "profiled_server.py"
_SAMPLES = "samples.json"
_ROOT = f"{Path(__file__).parents[1]}/"
_RESET_SECONDS, _PATIENCE = 0.3, 60.0


class Options(argparse.Namespace):
    graph: str
    turns: int
    long: int
    calls: bool


def main() -> None:
    options = _parser().parse_args(namespace=Options())
    with workplace() as folder:
        (_count_calls if options.calls else _measure_times)(folder, options)


def _measure_times(folder: Path, options: Options) -> None:
    with serving(_sampled, folder) as served, _conversation(served, options) as turn:
        served.process.send_signal(signal.SIGUSR1)
        time.sleep(_RESET_SECONDS)
        before = served.cpu_seconds()
        for number in range(options.turns):
            turn(number)
        spent = (served.cpu_seconds() - before) / options.turns * 1000
    sums = json.loads((folder / _SAMPLES).read_text(encoding="utf-8"))
    print(f"{spent:.1f} CPU-ms a run")
    for title, column in (("in the function itself", 2), ("with what it calls", 3)):
        _print(title, sorted(sums, key=lambda row: -float(row[column]))[:SHOWN], options.turns)


def _count_calls(folder: Path, options: Options) -> None:
    with serving(_profiled, folder) as served:
        with _conversation(served, options) as turn:
            served.process.send_signal(signal.SIGUSR1)
            for number in range(options.turns):
                turn(number)
        served.process.send_signal(signal.SIGUSR1)
        served.process.wait(_PATIENCE)
    for file in sorted(folder.glob("*.profile")):
        profile = pstats.Stats(str(file))
        print(f"\n=== {file.stem}: {profile.total_calls / options.turns:,.0f} calls per run")  # type: ignore[attr-defined]
        profile.sort_stats("tottime").print_stats(SHOWN)


@contextmanager
def _conversation(served: Served, options: Options) -> Iterator[Callable[[int], object]]:
    """One turn of a conversation that has been made long."""
    client = Client(served.port)
    thread_id = client.new_thread()

    def turn(number: int) -> object:
        return client.wait(thread_id, options.graph, input=_input(options.graph, number))

    for number in range(options.long):
        turn(number)
    yield turn
    client.close()


def _profiled(folder: Path, port: int) -> list[str]:
    python, _, _, command, *arguments = assent(folder, port)
    # `-P`: beside the server, this module would be found as Python's own `profile`.
    return [python, "-P", str(_PROFILED), str(folder), command, "--no-reload", *arguments]


def _sampled(folder: Path, port: int) -> list[str]:
    python, _, _, *arguments = assent(folder, port)
    return [python, str(_SAMPLED), str(folder / _SAMPLES), *arguments]


def _input(graph: str, number: int) -> dict[str, object]:
    return said(number) if graph == "chat" else {"text": "hi"}


def _print(title: str, rows: list[list[str]], turns: int) -> None:
    table = Table(f"ms a run, {title}", "function", "file")
    for file, function, own, total in rows:
        shown = own if title.startswith("in") else total
        table.add_row(f"{float(shown) / turns:.2f}", function, file.rpartition("site-packages/")[2].removeprefix(_ROOT))
    Console().print(table)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("graph", nargs="?", default="echo", choices=["echo", "steps", "chat"])
    parser.add_argument("--turns", type=int, default=200, help="the runs to measure")
    parser.add_argument("--long", type=int, default=20, help="the runs before them")
    parser.add_argument("--calls", action="store_true", help="count the calls of functions per run")
    return parser


if __name__ == "__main__":
    main()
