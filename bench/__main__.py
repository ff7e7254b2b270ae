"""Runs the benchmarks and prints one table: `python -m bench [NAME …] [--json]`.

A benchmark is a module `bench_<name>.py` in this folder with `run() -> list[Row]`.
The exit code is 1 when a target was missed.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import document
from bench.machine import machine_facts, today
from bench.rows import Row

PREFIX = "bench_"


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    rows = list(run_all(arguments.names or available(), write=arguments.write))
    print_json(rows) if arguments.json else print_table(rows)
    return 0 if all(row.ok for row in rows) else 1


def available(folder: Path = Path(__file__).parent) -> list[str]:
    return sorted(file.stem.removeprefix(PREFIX) for file in folder.glob(f"{PREFIX}*.py"))


def run_all(names: Iterable[str], *, write: bool = False) -> Iterator[Row]:
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows = import_module(f"bench.{PREFIX}{name}").run()
        if write:
            document.write(name, rows)
        yield from rows


def print_table(rows: Iterable[Row]) -> None:
    table = Table("measure", "value", "unit", "floor or peer", "ratio", "target", "")
    for row in rows:
        verdict = "[green]met[/]" if row.ok else "[red bold]MISSED[/]"
        table.add_row(
            row.name, _figure(row.value), row.unit, _figure(row.peer), _figure(row.ratio), row.target, verdict
        )
    console = Console()
    console.print(table)
    console.print(f"{today()}: " + ", ".join(f"{name} {value}" for name, value in machine_facts().items()), style="dim")


def print_json(rows: Iterable[Row]) -> None:
    results = [asdict(row) | {"ratio": row.ratio} for row in rows]
    print(json.dumps({"date": today(), "machine": machine_facts(), "rows": results}, indent=2))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Assent against floor and peers.")
    parser.add_argument("names", nargs="*", type=_known, metavar="NAME", help=", ".join(available()))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/benchmarks.md as well")
    return parser


def _known(name: str) -> str:
    if name not in available():
        raise argparse.ArgumentTypeError(f"no benchmark {name!r}; there are: {', '.join(available())}")
    return name


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
