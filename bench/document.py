"""Writes figures into docs/benchmarks.md: the table of a benchmark stands between two comments with its name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from bench.machine import machine_facts, today
from bench.rows import Row

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_HEAD = ("| measure | Assent | peer or floor | ratio | target |", "|---|---|---|---|---|")


def write(name: str, rows: Iterable[Row], page: Path = PAGE) -> None:
    """Replaces the table of this benchmark, if the page has one."""
    facts = machine_facts()
    measured = f"Measured on {today()}: {facts['processor']}, {facts['memory']}, Python {facts['Python']}."
    table = "\n".join((measured, "", *_HEAD, *map(line, rows)))
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = page.read_text()
    page.write_text(
        re.sub(f"{re.escape(start)}.*?{re.escape(end)}", lambda _: f"{start}\n{table}\n{end}", text, flags=re.DOTALL)
    )


def line(row: Row) -> str:
    peer = "" if row.peer is None else _with_unit(row.peer, row)
    ratio = "" if row.ratio is None else f"{figure(row.ratio)} ×"
    target = row.target if row.ok else f"{row.target}, **missed**"
    return f"| {row.name} | {_with_unit(row.value, row)} | {peer} | {ratio} | {target} |"


def _with_unit(value: float, row: Row) -> str:
    return f"{figure(value)} {row.unit}".rstrip()


def figure(value: float) -> str:
    """Two significant digits, and whole numbers from 100."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"
